//! What a job runs: a command, or later a function or an actor of a Rust program.

use serde::{Deserialize, Serialize};

/// What a job runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Entrypoint {
    /// A program with arguments.
    Command(Command),
    /// A function that a Rust program registered; not yet run by workers.
    Function(FunctionWork),
    /// A long-lived actor that a Rust program registered; not yet run by workers.
    Actor(ActorWork),
}

/// A program with arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// Program, then arguments; never empty.
    pub argv: Vec<String>,
    /// The text of the script that `argv[0]` names, as it was at submission: later edits do not change the
    /// job.
    pub script: Option<String>,
}

/// A call of a registered function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FunctionWork {
    /// The registered name.
    pub name: String,
    /// The encoded argument.
    pub argument: Vec<u8>,
}

/// A named, supervised actor.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ActorWork {
    /// The registered type.
    pub name: String,
    /// The encoded initial state.
    pub state: Vec<u8>,
}

impl Entrypoint {
    /// One line for people: the command as typed, or the registered name.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Entrypoint::Command(command) => command.argv.join(" "),
            Entrypoint::Function(function) => format!("function {}", function.name),
            Entrypoint::Actor(actor) => format!("actor {}", actor.name),
        }
    }
}

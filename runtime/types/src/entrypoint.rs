//! What a job runs: a command, or a part of an application.

use serde::{Deserialize, Serialize};

use crate::{ApplicationRole, ApplicationWork, AttemptId, RunnerWork};

/// How the title of an application begins.
const APPLICATION_TITLE: &str = "application ";

/// What a job runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Entrypoint {
    /// A program with arguments.
    Command(Command),
    /// The coordinator of an application: its root job.
    Application(ApplicationWork),
    /// A part of the code of an application: a child of its root job.
    Runner(RunnerWork),
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

impl Entrypoint {
    /// One line for people: the command as typed, or the part of the application.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Entrypoint::Command(command) => command.argv.join(" "),
            Entrypoint::Application(work) => {
                format!("{APPLICATION_TITLE}{}", titled(&work.program, &work.arguments))
            }
            Entrypoint::Runner(work) => {
                format!("{} of application {}", work.role.as_str(), work.application.job)
            }
        }
    }

    /// Whether this may be the title of an application: that of a command may begin in the same way.
    #[must_use]
    pub fn is_application_title(title: &str) -> bool {
        title.starts_with(APPLICATION_TITLE)
    }

    /// Its role in an application, if it is a part of one.
    #[must_use]
    pub const fn role(&self) -> Option<ApplicationRole> {
        match self {
            Entrypoint::Command(_) => None,
            Entrypoint::Application(_) => Some(ApplicationRole::Coordinator),
            Entrypoint::Runner(work) => Some(ApplicationRole::Runner(work.role)),
        }
    }

    /// The attempt of the root job to which it belongs, if it is a child in an application.
    #[must_use]
    pub const fn parent(&self) -> Option<AttemptId> {
        match self {
            Entrypoint::Command(_) | Entrypoint::Application(_) => None,
            Entrypoint::Runner(work) => Some(work.application),
        }
    }

    /// The application to which an attempt of the job belongs, by the attempt of the root.
    #[must_use]
    pub const fn application_of(&self, attempt: AttemptId) -> Option<AttemptId> {
        match self {
            Entrypoint::Command(_) => None,
            Entrypoint::Application(_) => Some(attempt),
            Entrypoint::Runner(work) => Some(work.application),
        }
    }
}

fn titled(program: &str, arguments: &[String]) -> String {
    [program].into_iter().chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

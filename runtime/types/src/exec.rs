//! Further processes beside a running rank, in its environment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{LogChunk, LogPosition, Outcome, RankId, TerminalSize};

/// The most bytes of the command and the variables of a further process.
const MOST_EXEC_BYTES: usize = 128 << 10;

/// The most further processes of a rank at once.
pub const MOST_EXECS: usize = 8;

/// A further process of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExecId {
    /// The rank.
    pub rank: RankId,
    /// A number that the client has drawn at random.
    pub number: u64,
}

/// Starts a further process of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRequest {
    /// Which. To start the same twice starts it once.
    pub id: ExecId,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables besides those of the rank.
    pub environment: BTreeMap<String, String>,
    /// The size at first of its terminal, if it gets one. Else its streams are pipes.
    pub terminal: Option<TerminalSize>,
}

impl ExecRequest {
    /// Refuses what cannot be started.
    ///
    /// # Errors
    /// What is wrong and what to do.
    pub fn check(&self) -> Result<(), String> {
        let texts = || self.environment.iter().flat_map(|(name, value)| [name, value]).chain(&self.argv);
        let bytes: usize = texts().map(|text| text.len() + 1).sum();
        match self.argv.first() {
            None => Err("there is no command to run: write it after --".into()),
            Some(program) if program.is_empty() => Err("the command's name is empty".into()),
            Some(_) if texts().any(|text| text.contains('\0')) => {
                Err("a command and its variables cannot contain a NUL character".into())
            }
            Some(_) if self.environment.keys().any(|name| name.is_empty() || name.contains('=')) => {
                Err("the name of an environment variable is empty or contains =".into())
            }
            Some(_) if bytes > MOST_EXEC_BYTES => Err(format!(
                "the command and its variables have {bytes} bytes, and may have {MOST_EXEC_BYTES}: pass a file"
            )),
            Some(_) => Ok(()),
        }
    }
}

/// Asks for the output of a further process from a position on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRead {
    /// Which.
    pub id: ExecId,
    /// What comes before it is not needed any more.
    pub from: LogPosition,
}

/// A piece of the output of a further process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecOutput {
    /// What it printed.
    pub chunk: LogChunk,
    /// How it ended, once it has and all its output was read.
    pub outcome: Option<Outcome>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobId;

    fn request(argv: &[&str]) -> ExecRequest {
        let id = ExecId { rank: JobId::new(1).attempt(1).rank(0), number: 7 };
        let argv = argv.iter().map(|it| (*it).to_owned()).collect();
        ExecRequest { id, argv, environment: BTreeMap::new(), terminal: None }
    }

    #[test]
    fn a_command_that_cannot_be_started_is_refused_with_a_message() {
        assert_eq!(request(&["ls", ""]).check(), Ok(()));
        let refused = |request: ExecRequest| request.check().unwrap_err();
        assert!(refused(request(&[])).contains("no command"));
        assert!(refused(request(&[""])).contains("empty"));
        assert!(refused(request(&["a\0b"])).contains("NUL"));
        assert!(refused(request(&["echo", &"x".repeat(MOST_EXEC_BYTES)])).contains("pass a file"));
        let environment = BTreeMap::from([("A=B".to_owned(), String::new())]);
        assert!(refused(ExecRequest { environment, ..request(&["ls"]) }).contains("variable"));
    }
}

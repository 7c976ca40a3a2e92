//! Outcomes of ranks.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Signal};

/// How a rank ended, as its executor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(Signal),
    /// It never ran.
    NotStarted(StartFailure),
    /// Its executor vanished without leaving an outcome.
    Lost(String),
    /// It failed after reporting that the GPU had no memory left.
    OutOfGpuMemory {
        /// Its exit code, or 128 + signal.
        code: i32,
        /// Its own message.
        #[serde(rename = "said")]
        message: String,
    },
    /// The system killed it because it ran out of host memory.
    OutOfMemory {
        /// Its exit code, or 128 + signal.
        code: i32,
        /// How much its job may have on the node; nothing if the node itself had none left.
        limit: Option<Bytes>,
        /// The most that its job ever held there, where the system tells.
        peak: Option<Bytes>,
    },
}

/// Why a rank never ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFailure {
    /// No such program.
    CommandNotFound(String),
    /// The program may not be executed.
    NotExecutable(String),
    /// The working directory is not there, or may not be entered.
    WorkdirMissing(String),
    /// A device it was given is not there.
    DeviceMissing(String),
    /// Anything else, in words.
    Other(String),
    /// Another program listens at the port at which the ranks were to meet.
    PortTaken(u16),
    /// Its device was taken out of service: why.
    DeviceFenced(String),
    /// It shares only where its limits are enforced, and they would not be: why.
    Unenforced(String),
    /// The machine has no room for it: its disk is full, or it has no more processes, files or memory.
    #[serde(rename = "node_trouble")]
    NodeProblem(String),
    /// It may not, or cannot, run as the account of its user: why.
    Account(String),
    /// The head that ordered it ended before it heard more of it, and its worker has nothing of it: so it was
    /// never sent, or did not get far. Only a head says so.
    OrderLost,
}

/// The text in an outcome, shared or exclusive as the reference to the outcome is.
macro_rules! text_in {
    ($outcome:expr) => {
        match $outcome {
            Outcome::Exited(_) | Outcome::Signalled(_) | Outcome::OutOfMemory { .. } => None,
            Outcome::Lost(text) | Outcome::OutOfGpuMemory { message: text, .. } => Some(text),
            Outcome::NotStarted(failure) => match failure {
                StartFailure::CommandNotFound(text)
                | StartFailure::NotExecutable(text)
                | StartFailure::WorkdirMissing(text)
                | StartFailure::DeviceMissing(text)
                | StartFailure::Other(text)
                | StartFailure::DeviceFenced(text)
                | StartFailure::Unenforced(text)
                | StartFailure::NodeProblem(text)
                | StartFailure::Account(text) => Some(text),
                StartFailure::PortTaken(_) | StartFailure::OrderLost => None,
            },
        }
    };
}

impl Outcome {
    /// What a worker said in words, if it did.
    #[must_use]
    pub const fn text(&self) -> Option<&String> {
        text_in!(self)
    }

    /// The same, for a change.
    pub const fn text_mut(&mut self) -> Option<&mut String> {
        text_in!(self)
    }

    /// Whether it exited with code 0.
    #[must_use]
    pub const fn succeeded(&self) -> bool {
        matches!(self, Outcome::Exited(0))
    }

    /// The code by which shells would report this end: its own, 128 + signal, 125 to 127.
    #[must_use]
    pub const fn shell_code(&self) -> i32 {
        match self {
            Outcome::Exited(code)
            | Outcome::OutOfGpuMemory { code, .. }
            | Outcome::OutOfMemory { code, .. } => *code,
            Outcome::Signalled(signal) => 128 + signal.0,
            Outcome::NotStarted(StartFailure::CommandNotFound(_)) => 127,
            Outcome::NotStarted(StartFailure::NotExecutable(_)) => 126,
            Outcome::NotStarted(_) | Outcome::Lost(_) => 125,
        }
    }
}

/// A clause for people: "it …".
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Exited(code) => write!(f, "exited with code {code}"),
            Outcome::Signalled(signal) => write!(f, "was ended by {signal}"),
            Outcome::NotStarted(failure) => write!(f, "could not be started: {failure}"),
            Outcome::Lost(detail) => write!(f, "was lost: {detail}"),
            Outcome::OutOfGpuMemory { code, message } => {
                write!(f, "ran out of GPU memory and exited with code {code}: {message}")
            }
            Outcome::OutOfMemory { code, limit, peak } => {
                match limit {
                    Some(limit) => write!(
                        f,
                        "was killed (code {code}) because it used more than its job's limit of {limit} of host memory"
                    )?,
                    None => write!(f, "was killed (code {code}) because its node ran out of memory")?,
                }
                peak.map_or(Ok(()), |peak| write!(f, "; its peak was {peak}"))
            }
        }
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartFailure::CommandNotFound(program) => {
                write!(f, "the command '{program}' does not exist on the worker")
            }
            StartFailure::NotExecutable(program) => write!(f, "'{program}' is not executable"),
            StartFailure::WorkdirMissing(path) => {
                write!(f, "the working directory '{path}' cannot be entered on the worker")
            }
            StartFailure::DeviceMissing(device) => write!(f, "the worker has no device '{device}'"),
            StartFailure::Other(detail) => f.write_str(detail),
            StartFailure::PortTaken(port) => {
                write!(f, "another program listens on port {port}, which its ranks need for their rendezvous")
            }
            StartFailure::DeviceFenced(why) => write!(f, "its device was taken out of service: {why}"),
            StartFailure::Unenforced(why) => write!(f, "its limits would not be enforced: {why}"),
            StartFailure::NodeProblem(what) => write!(f, "its node has a problem: {what}"),
            StartFailure::Account(why) => f.write_str(why),
            StartFailure::OrderLost => {
                f.write_str("the head stopped after it ordered the start, and the worker has no record of it")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_the_code_that_shells_use() {
        let not_started = |failure| Outcome::NotStarted(failure).shell_code();
        assert_eq!(Outcome::Exited(7).shell_code(), 7);
        assert_eq!(Outcome::Signalled(Signal::KILL).shell_code(), 137);
        assert_eq!(not_started(StartFailure::CommandNotFound("x".into())), 127);
        assert_eq!(not_started(StartFailure::NotExecutable("x".into())), 126);
        assert_eq!(not_started(StartFailure::WorkdirMissing("x".into())), 125);
    }

    #[test]
    fn out_of_memory_names_the_limit_of_the_job_or_the_node() {
        let limit = Some(Bytes(2 << 30));
        let own = Outcome::OutOfMemory { code: 137, limit, peak: limit };
        let of_node = Outcome::OutOfMemory { code: 137, limit: None, peak: None };
        assert_eq!(
            own.to_string(),
            "was killed (code 137) because it used more than its job's limit of 2 GiB of host memory; its peak \
             was 2 GiB"
        );
        assert_eq!(of_node.to_string(), "was killed (code 137) because its node ran out of memory");
    }
}

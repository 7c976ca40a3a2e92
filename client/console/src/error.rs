//! Why a command failed: an exit code that scripts can tell apart, a code for JSON, and words for people.
//!
//! The codes from 64 are those of BSD's `sysexits`; those that a job ended with never come through here.

#[cfg(feature = "client")]
mod client;

use std::error::Error;
use std::process::ExitCode;

use serde::Serialize;

use crate::document::{VersionedDocument, with_schema};

/// A command that failed, with the sentence that its user reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    pub kind: CommandErrorKind,
    pub message: String,
}

/// `{"error": {"code", "message"}}`
#[derive(Debug, Serialize)]
pub struct ErrorDocument<'a> {
    error: ErrorBody<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    code: &'static str,
    message: &'a str,
}

/// What kind of kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandErrorKind {
    /// The command line makes no sense.
    Usage,
    /// What was asked for cannot be had, or its description is wrong.
    Impossible(&'static str),
    /// There is no such job, node, token or file.
    NotFound,
    /// The head does not answer.
    Unreachable,
    /// A bug of ours.
    Internal,
    /// A file, a folder or the network refused.
    InputOutput,
    /// Not now, perhaps later.
    TryLater,
    /// The two sides do not understand each other.
    Protocol,
    /// The token does not allow it.
    NotAllowed,
    /// Settings, tokens or state are not usable.
    Configuration,
    /// Whoever read our output went away.
    ClosedPipe,
    /// The user interrupted it.
    Interrupted,
}

impl CommandErrorKind {
    /// The code with which the program ends.
    const fn exit_code(self) -> u8 {
        match self {
            CommandErrorKind::Usage => 2,
            CommandErrorKind::Impossible(_) => 65,
            CommandErrorKind::NotFound => 66,
            CommandErrorKind::Unreachable => 69,
            CommandErrorKind::Internal => 70,
            CommandErrorKind::InputOutput => 74,
            CommandErrorKind::TryLater => 75,
            CommandErrorKind::Protocol => 76,
            CommandErrorKind::NotAllowed => 77,
            CommandErrorKind::Configuration => 78,
            CommandErrorKind::Interrupted => 130,
            // As if SIGPIPE had ended us.
            CommandErrorKind::ClosedPipe => 141,
        }
    }

    /// The word for it in JSON.
    const fn word(self) -> &'static str {
        match self {
            CommandErrorKind::Usage => "usage",
            CommandErrorKind::Impossible(word) => word,
            CommandErrorKind::NotFound => "not_found",
            CommandErrorKind::Unreachable => "unreachable",
            CommandErrorKind::Internal => "internal",
            CommandErrorKind::InputOutput => "input_output",
            CommandErrorKind::TryLater => "unavailable",
            CommandErrorKind::Protocol => "protocol",
            CommandErrorKind::NotAllowed => "not_allowed",
            CommandErrorKind::Configuration => "configuration",
            CommandErrorKind::ClosedPipe => "closed_pipe",
            CommandErrorKind::Interrupted => "interrupted",
        }
    }
}

impl CommandError {
    pub fn new(kind: CommandErrorKind, message: impl Into<String>) -> CommandError {
        CommandError { kind, message: message.into() }
    }

    /// What was asked for is wrong in itself.
    pub fn invalid(message: impl Into<String>) -> CommandError {
        CommandError::new(CommandErrorKind::Usage, message)
    }

    /// A setting or file of the installation is wrong.
    pub fn configuration(message: impl Into<String>) -> CommandError {
        CommandError::new(CommandErrorKind::Configuration, message)
    }

    /// With an error and all its causes as the words.
    pub fn from_error(kind: CommandErrorKind, error: &dyn Error) -> CommandError {
        CommandError::new(kind, with_causes(error))
    }

    /// The code with which the program ends.
    pub fn exit_code(&self) -> ExitCode {
        self.kind.exit_code().into()
    }

    /// The document for scripts.
    pub fn document(&self) -> VersionedDocument<ErrorDocument<'_>> {
        with_schema(ErrorDocument { error: ErrorBody { code: self.kind.word(), message: &self.message } })
    }
}

/// An error and its causes in one line; a cause that an error already repeats is left out.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot listen")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("the port is taken")]
    struct Inner;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot listen: {0}")]
    struct Repeating(#[source] Inner);

    #[test]
    fn causes_are_told_once() {
        assert_eq!(with_causes(&Outer(Inner)), "cannot listen: the port is taken");
        assert_eq!(with_causes(&Repeating(Inner)), "cannot listen: the port is taken");
    }
}

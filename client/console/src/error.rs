//! Errors of commands: an exit code, a code for JSON and a message.
//!
//! The exit codes from 64 on are those of BSD's `sysexits`. Exit codes of jobs are not errors of a command.

#[cfg(feature = "client")]
mod client;

use std::error::Error;
use std::process::ExitCode;

use serde::Serialize;

use crate::document::{VersionedDocument, with_schema};

/// The error of a command, with a message for its user.
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

/// The kind of an error, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandErrorKind {
    /// The command line is wrong.
    Usage,
    /// The request cannot be satisfied, or its input is wrong. The value is the code for JSON.
    Impossible(&'static str),
    /// A job, node, token or file does not exist.
    NotFound,
    /// The head does not answer.
    Unreachable,
    /// A bug in Cohabit.
    Internal,
    /// A file, a directory or the network failed.
    InputOutput,
    /// Not possible now, but perhaps later.
    TryLater,
    /// The client and the head do not understand each other.
    Protocol,
    /// The token does not permit the request.
    NotAllowed,
    /// Settings, token or state are unusable.
    Configuration,
    /// The reader of the output closed it.
    ClosedPipe,
    /// The user interrupted the command.
    Interrupted,
}

impl CommandErrorKind {
    /// The exit code.
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
            // As if SIGPIPE had killed the program.
            CommandErrorKind::ClosedPipe => 141,
        }
    }

    /// The code for JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
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

    /// A usage error.
    pub fn invalid(message: impl Into<String>) -> CommandError {
        CommandError::new(CommandErrorKind::Usage, message)
    }

    /// An error in settings, tokens or state.
    pub fn configuration(message: impl Into<String>) -> CommandError {
        CommandError::new(CommandErrorKind::Configuration, message)
    }

    /// A bug in Cohabit.
    pub fn internal(message: impl Into<String>) -> CommandError {
        CommandError::new(CommandErrorKind::Internal, message)
    }

    /// An error whose message is `error` and all its causes.
    pub fn from_error(kind: CommandErrorKind, error: &dyn Error) -> CommandError {
        CommandError::new(kind, with_causes(error))
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        self.kind.exit_code().into()
    }

    /// The document for scripts.
    pub fn document(&self) -> VersionedDocument<ErrorDocument<'_>> {
        with_schema(ErrorDocument { error: ErrorBody { code: self.kind.word(), message: &self.message } })
    }
}

/// An error and its causes in one line. A cause that the message already contains is left out.
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
    fn each_cause_is_named_once() {
        assert_eq!(with_causes(&Outer(Inner)), "cannot listen: the port is taken");
        assert_eq!(with_causes(&Repeating(Inner)), "cannot listen: the port is taken");
    }
}

//! Why a command failed: an exit code that scripts can tell apart, a code for JSON, and words for people.
//!
//! The codes from 64 are those of BSD's `sysexits`; those that a job ended with never come through here.

use std::error::Error;
use std::process::ExitCode;

use cohabit_client::Error as ClientError;
use cohabit_client::proto::{Refusal, RefusalCode};
use serde::Serialize;

use crate::render::documents::{VersionedDocument, with_schema};

/// A command that failed, with the sentence that its user reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CommandError {
    pub(crate) trouble: CommandErrorKind,
    pub(crate) message: String,
}

/// `{"error": {"code", "message"}}`
#[derive(Debug, Serialize)]
pub(crate) struct ErrorDocument<'a> {
    error: ErrorBody<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorBody<'a> {
    code: &'static str,
    message: &'a str,
}

/// What kind of trouble it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandErrorKind {
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
    pub(crate) fn new(trouble: CommandErrorKind, message: impl Into<String>) -> CommandError {
        CommandError { trouble, message: message.into() }
    }

    /// What was asked for is wrong in itself.
    pub(crate) fn invalid(message: impl Into<String>) -> CommandError {
        CommandError::new(CommandErrorKind::Usage, message)
    }

    /// A setting or file of the installation is wrong.
    pub(crate) fn configuration(message: impl Into<String>) -> CommandError {
        CommandError::new(CommandErrorKind::Configuration, message)
    }

    /// With an error and all its causes as the words.
    pub(crate) fn from_error(trouble: CommandErrorKind, error: &dyn Error) -> CommandError {
        CommandError::new(trouble, with_causes(error))
    }

    /// The code with which the program ends.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.trouble.exit_code().into()
    }

    /// The document for scripts.
    pub(crate) fn document(&self) -> VersionedDocument<ErrorDocument<'_>> {
        with_schema(ErrorDocument { error: ErrorBody { code: self.trouble.word(), message: &self.message } })
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

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> CommandError {
        let trouble = match refusal.code {
            RefusalCode::Invalid => CommandErrorKind::Usage,
            RefusalCode::Unsatisfiable => CommandErrorKind::Impossible("unsatisfiable"),
            RefusalCode::Ambiguous => CommandErrorKind::Impossible("ambiguous"),
            RefusalCode::WrongState => CommandErrorKind::Impossible("wrong_state"),
            RefusalCode::NotFound => CommandErrorKind::NotFound,
            RefusalCode::NotAllowed => CommandErrorKind::NotAllowed,
            RefusalCode::Unavailable | RefusalCode::StorageFailed => CommandErrorKind::TryLater,
            RefusalCode::Internal => CommandErrorKind::Internal,
        };
        CommandError::new(trouble, refusal.message)
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> CommandError {
        let trouble = match &error {
            ClientError::Refused(refusal) => return refusal.clone().into(),
            ClientError::Unreachable(_) => CommandErrorKind::Unreachable,
            ClientError::NotAllowed(_) => CommandErrorKind::NotAllowed,
            ClientError::Unconfirmed { .. } => CommandErrorKind::TryLater,
            ClientError::InvalidJob(_) => CommandErrorKind::Usage,
            ClientError::Configuration(_) | ClientError::Link(_) => CommandErrorKind::Configuration,
            ClientError::Protocol(_) => CommandErrorKind::Protocol,
            // Variants that a later SDK adds.
            _ => CommandErrorKind::Internal,
        };
        CommandError::from_error(trouble, &error)
    }
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

    #[test]
    fn refusals_keep_their_code_for_scripts_and_get_an_exit_code() {
        let failure = CommandError::from(Refusal::new(RefusalCode::Unsatisfiable, "no node has 9 GPUs"));
        assert_eq!(failure.trouble.exit_code(), 65);
        assert_eq!(
            serde_json::to_string(&failure.document()).unwrap(),
            r#"{"schema":1,"error":{"code":"unsatisfiable","message":"no node has 9 GPUs"}}"#
        );
        assert_eq!(CommandError::from(Refusal::new(RefusalCode::NotAllowed, "")).trouble.exit_code(), 77);
    }
}

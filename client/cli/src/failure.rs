//! Why a command failed: an exit code that scripts can tell apart, a code for JSON, and words for people.
//!
//! The codes from 64 are those of BSD's `sysexits`; those that a job ended with never come through here.

use std::error::Error;
use std::process::ExitCode;

use cohabit_client::Error as ClientError;
use cohabit_client::proto::{Refusal, RefusalCode};
use serde::Serialize;

use crate::render::documents::{Versioned, versioned};

/// A command that failed, with the sentence that its user reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) trouble: Trouble,
    pub(crate) message: String,
}

/// `{"error": {"code", "message"}}`
#[derive(Debug, Serialize)]
pub(crate) struct Problem<'a> {
    error: Told<'a>,
}

#[derive(Debug, Serialize)]
struct Told<'a> {
    code: &'static str,
    message: &'a str,
}

/// What kind of trouble it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
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

impl Trouble {
    /// The code with which the program ends.
    const fn exit_code(self) -> u8 {
        match self {
            Trouble::Usage => 2,
            Trouble::Impossible(_) => 65,
            Trouble::NotFound => 66,
            Trouble::Unreachable => 69,
            Trouble::Internal => 70,
            Trouble::InputOutput => 74,
            Trouble::TryLater => 75,
            Trouble::Protocol => 76,
            Trouble::NotAllowed => 77,
            Trouble::Configuration => 78,
            Trouble::Interrupted => 130,
            // As if SIGPIPE had ended us.
            Trouble::ClosedPipe => 141,
        }
    }

    /// The word for it in JSON.
    const fn word(self) -> &'static str {
        match self {
            Trouble::Usage => "usage",
            Trouble::Impossible(word) => word,
            Trouble::NotFound => "not_found",
            Trouble::Unreachable => "unreachable",
            Trouble::Internal => "internal",
            Trouble::InputOutput => "input_output",
            Trouble::TryLater => "unavailable",
            Trouble::Protocol => "protocol",
            Trouble::NotAllowed => "not_allowed",
            Trouble::Configuration => "configuration",
            Trouble::ClosedPipe => "closed_pipe",
            Trouble::Interrupted => "interrupted",
        }
    }
}

impl Failure {
    pub(crate) fn new(trouble: Trouble, message: impl Into<String>) -> Failure {
        Failure { trouble, message: message.into() }
    }

    /// What was asked for is wrong in itself.
    pub(crate) fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(Trouble::Usage, message)
    }

    /// A setting or file of the installation is wrong.
    pub(crate) fn configuration(message: impl Into<String>) -> Failure {
        Failure::new(Trouble::Configuration, message)
    }

    /// With an error and all its causes as the words.
    pub(crate) fn from_error(trouble: Trouble, error: &dyn Error) -> Failure {
        Failure::new(trouble, with_causes(error))
    }

    /// The code with which the program ends.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.trouble.exit_code().into()
    }

    /// The document for scripts.
    pub(crate) fn document(&self) -> Versioned<Problem<'_>> {
        versioned(Problem { error: Told { code: self.trouble.word(), message: &self.message } })
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

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let trouble = match refusal.code {
            RefusalCode::Invalid => Trouble::Usage,
            RefusalCode::Unsatisfiable => Trouble::Impossible("unsatisfiable"),
            RefusalCode::Ambiguous => Trouble::Impossible("ambiguous"),
            RefusalCode::WrongState => Trouble::Impossible("wrong_state"),
            RefusalCode::NotFound => Trouble::NotFound,
            RefusalCode::NotAllowed => Trouble::NotAllowed,
            RefusalCode::Unavailable | RefusalCode::StorageFailed => Trouble::TryLater,
            RefusalCode::Internal => Trouble::Internal,
        };
        Failure::new(trouble, refusal.message)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let trouble = match &error {
            ClientError::Refused(refusal) => return refusal.clone().into(),
            ClientError::Unreachable(_) => Trouble::Unreachable,
            ClientError::NotAllowed(_) => Trouble::NotAllowed,
            ClientError::Unconfirmed { .. } => Trouble::TryLater,
            ClientError::InvalidJob(_) => Trouble::Usage,
            ClientError::Configuration(_) | ClientError::Link(_) => Trouble::Configuration,
            ClientError::Protocol(_) => Trouble::Protocol,
            // Variants that a later SDK adds.
            _ => Trouble::Internal,
        };
        Failure::from_error(trouble, &error)
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
        let failure = Failure::from(Refusal::new(RefusalCode::Unsatisfiable, "no node has 9 GPUs"));
        assert_eq!(failure.trouble.exit_code(), 65);
        assert_eq!(
            serde_json::to_string(&failure.document()).unwrap(),
            r#"{"schema":1,"error":{"code":"unsatisfiable","message":"no node has 9 GPUs"}}"#
        );
        assert_eq!(Failure::from(Refusal::new(RefusalCode::NotAllowed, "")).trouble.exit_code(), 77);
    }
}

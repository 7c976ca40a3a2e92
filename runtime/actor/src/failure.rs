//! How an actor fails: with an error, with a panic, or because a child of it was given up.
//!
//! A failure is for the supervisor, which restarts or escalates. It never answers a caller: a refusal that
//! somebody asked for belongs in the reply.

use std::any::Any;
use std::error::Error;
use std::fmt;

/// Any error, boxed; the reason why an incarnation ended.
///
/// It is made by `?` from every error type, and for that it is not an [`Error`] itself;
/// [`ActorFailure::into_error`] is.
pub struct ActorFailure(Box<dyn Error + Send + Sync>);

impl ActorFailure {
    /// A failure that is only a sentence: a lower-case fragment.
    pub fn from_message(reason: impl Into<String>) -> Self {
        Self(reason.into().into())
    }

    /// The error that was the reason, with its sources.
    pub fn into_error(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ActorFailure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for ActorFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

/// The error and its sources in one line, as a log wants it.
impl fmt::Display for ActorFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(formatter, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// An actor, or a task alongside it, panicked. Holds the panic's message.
#[derive(Debug, thiserror::Error)]
#[error("panicked: {0}")]
pub struct ActorPanic(pub String);

impl ActorPanic {
    pub(crate) fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast::<String>().map(|text| *text);
        let text = text.or_else(|payload| payload.downcast::<&'static str>().map(|text| text.to_string()));
        Self(text.unwrap_or_else(|_| "no message".to_string()))
    }
}

/// A supervisor has given an actor up, because it failed more often than its limit allows.
#[derive(Debug, thiserror::Error)]
#[error("actor `{actor}` failed again after {restarts} restart(s) within {window:?}")]
pub struct Escalation {
    /// The path of the actor, such as `driver/journal`.
    pub actor: String,
    /// How many restarts it had within the window.
    pub restarts: u32,
    /// The window of its [`RestartPolicy`](crate::Restart) limit.
    pub window: std::time::Duration,
    /// Its last failure.
    #[source]
    pub cause: Box<dyn Error + Send + Sync>,
}

//! How an actor fails, and what the end of the actor system reports.
//!
//! A failure is for the supervisor, which restarts the actor or ends the system. It is not for a caller:
//! answer a request that is refused with a reply.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The error that ended an actor.
///
/// Every error type converts into it with `?`; for that reason it is not an [`Error`] itself.
pub struct ActorFailure(Box<dyn Error + Send + Sync>);

impl ActorFailure {
    /// A failure that is only a message: a fragment that begins in lower case.
    pub fn from_message(message: impl Into<String>) -> Self {
        Self(message.into().into())
    }

    /// The error, with its sources.
    pub(crate) fn into_error(self) -> Box<dyn Error + Send + Sync> {
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

/// The error and its sources in one line, for logs.
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

/// An actor, or one of its side tasks, panicked. Holds the panic's message.
#[derive(Debug, thiserror::Error)]
#[error("panicked: {0}")]
pub(crate) struct ActorPanic(String);

impl ActorPanic {
    pub(crate) fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        let text = payload.downcast::<String>().map(|text| *text);
        let text = text.or_else(|payload| payload.downcast::<&'static str>().map(|text| text.to_string()));
        Self(text.unwrap_or_else(|_| "no message".to_string()))
    }
}

/// Why an actor system did not end in order.
#[derive(Debug, thiserror::Error)]
pub enum ActorSystemError {
    /// An actor that is restarted after failures failed more often than its limit allows.
    #[error("actor `{actor}` failed again, with {restarts} of its restarts used up within {window:?}")]
    RestartLimit {
        /// The actor's path, such as `driver/monitor`.
        actor: String,
        /// How many restarts it had within the window.
        restarts: u32,
        /// The span over which restarts are counted.
        window: Duration,
        /// Its last failure.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// An essential actor failed.
    #[error("the essential actor `{actor}` failed")]
    EssentialFailed {
        /// The actor's path.
        actor: String,
        /// Its failure.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// An essential actor stopped by itself.
    #[error("the essential actor `{actor}` stopped")]
    EssentialStopped {
        /// The actor's path.
        actor: String,
    },
    /// Actors of the top level did not stop in time and were dropped.
    #[error("dropped because they did not stop in time: {}", actors.join(", "))]
    Overdue {
        /// Their paths, in the order in which they were dropped.
        actors: Vec<String>,
    },
}

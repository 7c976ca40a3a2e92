//! The signal from a supervisor to a child: stop, and be done by this moment.
//!
//! Actors do not need it for themselves, they are stopped between two messages. It is for a long `handle` and
//! for the tasks of an actor. It never fires on a restart.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Tells when the actor is to stop; cheap to clone.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<Option<Instant>>);

/// The supervisor's end of the signal. Dropping it means: stop now.
#[derive(Debug)]
pub(crate) struct ShutdownSender(watch::Sender<Option<Instant>>);

pub(crate) fn switch() -> (ShutdownSender, Shutdown) {
    let (sender, receiver) = watch::channel(None);
    (ShutdownSender(sender), Shutdown(receiver))
}

/// The end of a span that starts now; a span beyond all clocks ends in a year.
pub(crate) fn deadline_after(span: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(span).unwrap_or(now + Duration::from_secs(365 * 24 * 3600))
}

impl ShutdownSender {
    pub(crate) fn request(&self, deadline: Instant) {
        self.0.send_replace(Some(deadline));
    }
}

impl Shutdown {
    /// Waits until the actor is to stop.
    pub async fn requested(&self) {
        let mut receiver = self.0.clone();
        // An error says that the supervisor is gone, which asks for the same.
        let _ = receiver.wait_for(Option::is_some).await;
    }

    /// Whether the actor is to stop.
    pub fn is_requested(&self) -> bool {
        self.0.borrow().is_some() || self.0.has_changed().is_err()
    }

    /// The moment after which the actor is dropped, where it is to stop.
    pub fn deadline(&self) -> Option<Instant> {
        *self.0.borrow()
    }

    /// The end of `grace` from now, or the deadline if that comes first.
    pub(crate) fn deadline_within(&self, grace: Duration) -> Instant {
        let end = deadline_after(grace);
        self.deadline().map_or(end, |deadline| deadline.min(end))
    }
}

//! The signal from a supervisor to a child to stop, with the instant by which it must be done.
//!
//! An actor is stopped between two messages and needs no signal for that. The signal is for a long `handle`
//! and for side tasks. A restart does not raise it.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The receiving end of the signal; cheap to clone.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<Option<Instant>>);

/// The supervisor's end of the signal. Dropping it means: stop now.
#[derive(Debug)]
pub(crate) struct ShutdownSender(watch::Sender<Option<Instant>>);

pub(crate) fn shutdown_channel() -> (ShutdownSender, Shutdown) {
    let (sender, receiver) = watch::channel(None);
    (ShutdownSender(sender), Shutdown(receiver))
}

/// The instant at the end of a span that starts now. A span that overflows the clock counts as a year.
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
    /// Waits until the actor must stop.
    pub async fn requested(&self) {
        let mut receiver = self.0.clone();
        // An error means that the supervisor is gone, which also asks the actor to stop.
        let _ = receiver.wait_for(Option::is_some).await;
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.borrow().is_some() || self.0.has_changed().is_err()
    }

    /// The end of `grace` from now, or the supervisor's deadline if that comes first.
    pub(crate) fn deadline_within(&self, grace: Duration) -> Instant {
        let end = deadline_after(grace);
        let deadline = *self.0.borrow();
        deadline.map_or(end, |deadline| deadline.min(end))
    }
}

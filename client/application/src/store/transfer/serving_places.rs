//! How many other stores are served at a time.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Connections that are served at the same time: those of two large objects.
pub(super) const MOST_SERVED: usize = 8;

/// Connections that wait until they are served.
const MOST_WAITING: usize = 16;

/// How long one waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who is served, and who waits for it.
#[derive(Debug)]
pub(in crate::store) struct ServingPlaces {
    served: Semaphore,
    waiting: Semaphore,
}

impl Default for ServingPlaces {
    fn default() -> ServingPlaces {
        ServingPlaces { served: Semaphore::new(MOST_SERVED), waiting: Semaphore::new(MOST_WAITING) }
    }
}

impl ServingPlaces {
    /// A place, as long as it is kept. None if too many want one.
    pub(super) async fn take(&self) -> Option<SemaphorePermit<'_>> {
        let _waiting = self.waiting.try_acquire().ok()?;
        timeout(PATIENCE, self.served.acquire()).await.ok()?.ok()
    }
}

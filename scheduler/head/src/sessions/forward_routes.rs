//! The workers of the ranks to whose ports a session connects, and whose files it copies.
//!
//! Whose a job is never changes, so a session asks the driver once for each rank, not for each piece.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cohabit_types::RankId;

use crate::driver::WorkerRoute;

/// Ranks whose workers a session remembers.
const MOST: usize = 64;

/// The workers of ranks to whose ports this session may connect, and whose files it may copy.
#[derive(Debug, Default)]
pub(super) struct ForwardRoutes(Mutex<BTreeMap<RankId, Arc<WorkerRoute>>>);

impl ForwardRoutes {
    pub(super) fn find(&self, rank: RankId) -> Option<Arc<WorkerRoute>> {
        self.lock().get(&rank).cloned()
    }

    /// Remembers the worker of a rank, and forgets the others where there are too many.
    pub(super) fn remember(&self, rank: RankId, route: Arc<WorkerRoute>) {
        let mut routes = self.lock();
        if routes.len() >= MOST {
            routes.clear();
        }
        routes.insert(rank, route);
    }

    pub(super) fn forget(&self, rank: RankId) {
        self.lock().remove(&rank);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RankId, Arc<WorkerRoute>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

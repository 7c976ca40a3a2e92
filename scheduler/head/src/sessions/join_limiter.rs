//! Bounds how often one node joins, which is written to the journal with the description of the node, and how
//! often the log says that a worker was refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cohabit_types::NodeId;

use crate::rates::{BucketRate, Rates};

/// Enough for a link that breaks again and again for a minute, and then one join in five seconds.
const JOINS: BucketRate = BucketRate { per_second: 0.2, burst: 30.0 };
/// Log lines for one token.
const LINES: BucketRate = BucketRate { per_second: 0.2, burst: 30.0 };

/// The joins of all nodes, and the refusals of all tokens; clones share them.
#[derive(Debug, Default, Clone)]
pub(crate) struct JoinLimiter {
    joins: Arc<Mutex<Rates<NodeId>>>,
    lines: Arc<Mutex<Rates<String>>>,
}

impl JoinLimiter {
    /// Takes a join of this node, if it may join now.
    pub(super) fn take(&self, node: NodeId) -> bool {
        locked(&self.joins).take(&node, 1, JOINS, Instant::now())
    }

    /// Whether to log that a worker with this token was refused.
    pub(super) fn may_log(&self, token: &str) -> bool {
        locked(&self.lines).take(&token.to_owned(), 1, LINES, Instant::now())
    }
}

fn locked<Key>(rates: &Mutex<Rates<Key>>) -> MutexGuard<'_, Rates<Key>> {
    rates.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_joins_so_often_and_others_do_not_wait_for_it() {
        let limiter = JoinLimiter::default();
        let node = |number| NodeId(uuid::Uuid::from_u128(number));
        assert_eq!((0..100).filter(|_| limiter.take(node(1))).count(), 30);
        assert!(limiter.take(node(2)));
    }
}

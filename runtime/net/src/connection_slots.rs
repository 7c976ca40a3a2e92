//! Limits the connections to a head, in all and by token, so that no token takes every slot.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts connections against both limits; clones share the counts.
#[derive(Clone)]
pub(crate) struct ConnectionLimiter(Arc<Shared>);

struct Shared {
    /// The most connections in all.
    all: usize,
    /// The most connections by one token.
    connections_per_token: usize,
    taken: Mutex<SlotCounts>,
}

/// Connections by the name of their token, and in all.
#[derive(Default)]
struct SlotCounts {
    by_name: BTreeMap<String, usize>,
    all: usize,
}

/// A slot that is taken; dropping it frees it.
pub(crate) struct ConnectionSlot {
    of: ConnectionLimiter,
    name: String,
}

/// Why there is no free slot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectionLimitError {
    /// All slots are taken.
    #[error("the head has reached its limit of connections: try again later")]
    Total,
    /// This token has as many connections as one token may have.
    #[error(
        "the token '{name}' has {connections} connections, the most for one token: close some, or try again later"
    )]
    PerToken {
        /// The token's name.
        name: String,
        /// How many connections it has.
        connections: usize,
    },
}

impl ConnectionLimiter {
    pub(crate) fn new(all: usize, connections_per_token: usize) -> ConnectionLimiter {
        ConnectionLimiter(Arc::new(Shared { all, connections_per_token, taken: Mutex::default() }))
    }

    /// Takes a slot for a connection with the token of this name.
    pub(crate) fn take(&self, name: &str) -> Result<ConnectionSlot, ConnectionLimitError> {
        let mut taken = self.taken();
        if taken.all >= self.0.all {
            return Err(ConnectionLimitError::Total);
        }
        let own = taken.by_name.get(name).copied().unwrap_or(0);
        if own >= self.0.connections_per_token {
            return Err(ConnectionLimitError::PerToken { name: name.to_owned(), connections: own });
        }
        taken.all += 1;
        taken.by_name.insert(name.to_owned(), own + 1);
        Ok(ConnectionSlot { of: self.clone(), name: name.to_owned() })
    }

    fn taken(&self) -> MutexGuard<'_, SlotCounts> {
        self.0.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.all -= 1;
        let own = taken.by_name.remove(&self.name).unwrap_or(1) - 1;
        if own > 0 {
            taken.by_name.insert(std::mem::take(&mut self.name), own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_exceeds_its_slots_and_all_together_not_the_total() {
        let places = ConnectionLimiter::new(3, 2);
        let ada = [places.take("ada").unwrap(), places.take("ada").unwrap()];
        let refused = places.take("ada").err().unwrap();
        assert_eq!(refused, ConnectionLimitError::PerToken { name: "ada".into(), connections: 2 });
        let bea = places.take("bea").unwrap();
        assert_eq!(places.take("cleo").err(), Some(ConnectionLimitError::Total));
        drop(ada);
        let _cleo = places.take("cleo").unwrap();
        let _ada = places.take("ada").unwrap();
        drop(bea);
        assert!(places.take("ada").is_ok());
        assert_eq!(places.taken().by_name.len(), 2);
    }
}

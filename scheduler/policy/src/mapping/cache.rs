//! A cache of a limited size; the oldest entry is dropped first.
//!
//! Which entries are kept follows from the order of insertions alone, so two runs drop the same ones.

use std::collections::{BTreeMap, VecDeque};

/// Results by key.
#[derive(Debug, Clone)]
pub(crate) struct Cache<Key, Found> {
    found: BTreeMap<Key, Found>,
    /// The oldest first.
    keys: VecDeque<Key>,
    capacity: usize,
}

impl<Key: Ord + Clone, Found: Clone> Cache<Key, Found> {
    pub(crate) const fn new(capacity: usize) -> Cache<Key, Found> {
        Cache { found: BTreeMap::new(), keys: VecDeque::new(), capacity }
    }

    /// The result for the key: a known one, or that of `work`, which is then kept.
    pub(crate) fn get_or(&mut self, key: Key, work: impl FnOnce() -> Found) -> Found {
        if let Some(found) = self.found.get(&key) {
            return found.clone();
        }
        let found = work();
        if self.keys.len() >= self.capacity
            && let Some(oldest) = self.keys.pop_front()
        {
            self.found.remove(&oldest);
        }
        self.keys.push_back(key.clone());
        self.found.insert(key, found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_goes_first() {
        let mut cache = Cache::new(2);
        for key in [1, 2, 1, 3] {
            cache.get_or(key, || key * 10);
        }
        assert_eq!(cache.found.keys().copied().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(cache.get_or(2, || panic!("known")), 20);
    }
}

//! What users have submitted that is not durable yet: the head's own count lacks it.

use std::collections::BTreeMap;

use cohabit_scheduler_core::{Event, UserUsage};
use cohabit_types::Request;

/// Submissions between their arrival and their commit, by user.
#[derive(Debug, Default)]
pub(super) struct QueuedUsage(BTreeMap<String, UserUsage>);

impl QueuedUsage {
    /// An event begins to wait for its commit.
    pub(super) fn add(&mut self, event: &Event) {
        let Event::Client(_, by, Request::Submit(submit)) = event else { return };
        let of_user = self.0.entry(by.user.clone()).or_default();
        of_user.waiting += submit.spec.members();
        of_user.bytes += submit.spec.footprint();
    }

    /// Such an event is applied or refused.
    pub(super) fn remove(&mut self, event: &Event) {
        let Event::Client(_, by, Request::Submit(submit)) = event else { return };
        let Some(of_user) = self.0.get_mut(&by.user) else { return };
        of_user.waiting = of_user.waiting.saturating_sub(submit.spec.members());
        of_user.bytes = of_user.bytes.saturating_sub(submit.spec.footprint());
        if *of_user == UserUsage::default() {
            self.0.remove(&by.user);
        }
    }

    /// What this user has in memory, and what waits for its commit.
    pub(super) fn with(&self, user: &str, in_memory: UserUsage) -> UserUsage {
        let queued = self.0.get(user).copied().unwrap_or_default();
        UserUsage {
            waiting: in_memory.waiting + queued.waiting,
            bytes: in_memory.bytes + queued.bytes,
            ..in_memory
        }
    }
}

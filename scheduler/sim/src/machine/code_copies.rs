//! The copies of code on the disk of a machine, in which ranks run.

use std::collections::BTreeSet;

use cohabit_types::AttemptId;
use cohabit_worker_core::RankStart;

/// The attempts to which a copy belongs.
#[derive(Debug, Default)]
pub(crate) struct SimCodeCopies(BTreeSet<AttemptId>);

impl SimCodeCopies {
    pub(crate) fn add(&mut self, attempt: AttemptId) {
        self.0.insert(attempt);
    }

    pub(crate) fn remove(&mut self, attempt: AttemptId) {
        self.0.remove(&attempt);
    }

    pub(super) fn remove_all_but(&mut self, live: &BTreeSet<AttemptId>) {
        self.0.retain(|attempt| live.contains(attempt));
    }

    /// Checks that the code of a rank is there that is to start.
    pub(crate) fn check(&self, start: &RankStart) -> Result<(), String> {
        let is_there = start.spec.code.is_none() || self.0.contains(&start.code_owner());
        if is_there { Ok(()) } else { Err(format!("{} starts without its code", start.rank)) }
    }

    /// One of the copies, if there is any.
    pub(crate) fn any(&self) -> Option<AttemptId> {
        self.0.first().copied()
    }
}

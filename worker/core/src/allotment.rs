//! The head changes the cores and the host memory that the ranks of an attempt may use together.
//!
//! Changing a limit may take the kernel a while. Changes of one attempt are made one after the other, so that
//! the last one that the head ordered is the one in force, and only that one is answered.

use cohabit_types::{AttemptId, HostShare, Report};

use crate::interface::WorkerEffect;
use crate::rank::RankState;
use crate::state::Worker;

/// A change of limits that is being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllotmentInProgress {
    /// What is being made the limit now.
    now: HostShare,
    /// What the head wants in the end.
    wanted: HostShare,
}

impl Worker {
    /// The end of an attempt that has ended here is reported in other ways. A rank that is being started sets
    /// the limits that it was started with, so the head orders no change before all ranks run.
    pub(crate) fn allot(&mut self, attempt: AttemptId, wanted: HostShare, out: &mut Vec<WorkerEffect>) {
        if !self.runs_wholly(attempt) {
            return;
        }
        match self.allotments.get_mut(&attempt) {
            Some(in_progress) => in_progress.wanted = wanted,
            None => self.begin_allotment(attempt, wanted, out),
        }
    }

    /// The limits of an attempt were changed to this; `None` if it has none any more.
    pub(crate) fn allotted(
        &mut self,
        attempt: AttemptId,
        in_force: Option<HostShare>,
        out: &mut Vec<WorkerEffect>,
    ) {
        let Some(AllotmentInProgress { now, wanted }) = self.allotments.remove(&attempt) else { return };
        let lives = self.ranks_of(attempt).any(|(_, held)| held.is_live());
        match in_force.filter(|_| lives) {
            Some(_) if now != wanted => self.begin_allotment(attempt, wanted, out),
            Some(host) => self.report(Some(Report::Allotted { attempt, host }), out),
            None => {}
        }
    }

    /// Whether ranks of the attempt are live, and all of them run.
    fn runs_wholly(&self, attempt: AttemptId) -> bool {
        let mut live = self.ranks_of(attempt).filter(|(_, held)| held.is_live()).peekable();
        live.peek().is_some() && live.all(|(_, held)| matches!(held.state, RankState::Running { .. }))
    }

    fn begin_allotment(&mut self, attempt: AttemptId, wanted: HostShare, out: &mut Vec<WorkerEffect>) {
        self.allotments.insert(attempt, AllotmentInProgress { now: wanted, wanted });
        out.push(WorkerEffect::Allot(attempt, wanted));
    }
}

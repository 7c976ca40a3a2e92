//! Copies of stored code: the ranks of an attempt wait until the copy of their snapshot is there, and when
//! the last of them has ended the copy is released. All parts of an application on this host share one copy
//! of its program.

use cohabit_types::{AttemptId, RankId, StartFailure, Time};

use crate::interface::{RankStart, WorkerEffect};
use crate::rank::{RankEntry, RankState};
use crate::state::{CodeState, Worker};

impl Worker {
    /// Orders the copy for this rank, if it uses one that is not there. One that is being made for ranks that
    /// have ended is removed first: its program may be that of another attempt with this id, before the head
    /// was reset.
    pub(crate) fn fetch_code(&mut self, start: RankStart, out: &mut Vec<WorkerEffect>) {
        if start.spec.code.is_some() && !self.code.contains_key(&start.code_owner()) {
            self.code.insert(start.code_owner(), CodeState::Fetching);
            out.push(WorkerEffect::FetchCode(Box::new(start)));
        }
    }

    /// Whether nothing is missing of the code of this rank.
    pub(crate) fn has_code(&self, rank: RankId) -> bool {
        let owner = self.ranks.get(&rank).map(|held| held.code_owner);
        owner.is_none_or(|owner| match self.code.get(&owner) {
            Some(CodeState::Fetching | CodeState::Abandoned) => false,
            Some(CodeState::Ready) | None => true,
        })
    }

    /// The copy is there, or cannot be made. If those that waited for it have ended, it is released,
    /// and made again for others.
    pub(crate) fn code_fetched(
        &mut self,
        now: Time,
        owner: AttemptId,
        result: Result<(), StartFailure>,
        out: &mut Vec<WorkerEffect>,
    ) {
        match self.code.get_mut(&owner) {
            Some(state @ CodeState::Fetching) => *state = CodeState::Ready,
            Some(CodeState::Abandoned) => {
                self.code.remove(&owner);
                out.push(WorkerEffect::ReleaseCode(owner));
                return self.fetch_code_again(owner, out);
            }
            Some(CodeState::Ready) | None => return,
        }
        let Err(failure) = result else { return };
        let is_waiting = |held: &RankEntry| matches!(held.state, RankState::Waiting(_));
        let waiting = self.ranks.iter().filter(|(_, held)| held.code_owner == owner && is_waiting(held));
        for rank in waiting.map(|(rank, _)| *rank).collect::<Vec<_>>() {
            self.spawn_failed(now, rank, failure.clone(), out);
        }
    }

    /// Orders the copy for the first rank that waits for it.
    fn fetch_code_again(&mut self, owner: AttemptId, out: &mut Vec<WorkerEffect>) {
        let waiting = self.ranks.values().filter(|held| held.code_owner == owner);
        let start = waiting.filter_map(|held| match &held.state {
            RankState::Waiting(start) => Some(RankStart::clone(start)),
            RankState::Starting(_) | RankState::Running { .. } | RankState::Ended(_) => None,
        });
        if let Some(start) = start.into_iter().next() {
            self.fetch_code(start, out);
        }
    }
}

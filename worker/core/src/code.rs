//! Copies of stored code: the ranks of an attempt wait until the copy of their snapshot is there, and when
//! the last of them has ended the copy is released. All parts of an application on this host share one copy
//! of its program.

use cohabit_types::{AttemptId, RankId, StartFailure, Time};

use crate::interface::{RankStart, WorkerEffect};
use crate::rank::{RankEntry, RankState};
use crate::state::{CodeState, Worker};

impl Worker {
    /// Why no copy can be made for this owner: an earlier one is not finished, of another attempt with its id
    /// before the head was reset, or of parts of the application that have ended.
    pub(crate) fn code_refusal(&self, owner: AttemptId) -> Option<StartFailure> {
        let message =
            || StartFailure::NodeProblem("the code of an earlier attempt is still being removed".into());
        (self.code.get(&owner) == Some(&CodeState::Abandoned)).then(message)
    }

    /// Orders the copy for this rank, if it uses one that is not there.
    pub(crate) fn fetch_code(&mut self, start: RankStart, out: &mut Vec<WorkerEffect>) {
        if start.spec.code.is_some() && !self.code.contains_key(&start.code_owner()) {
            self.code.insert(start.code_owner(), CodeState::Fetching);
            out.push(WorkerEffect::FetchCode(Box::new(start)));
        }
    }

    /// Whether nothing is missing of the code of this rank.
    pub(crate) fn has_code(&self, rank: RankId) -> bool {
        let owner = self.ranks.get(&rank).map(|held| held.code_owner);
        owner.is_none_or(|owner| self.code.get(&owner) != Some(&CodeState::Fetching))
    }

    /// The copy is there, or cannot be made. If nobody waits for it any more, it is released.
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
                return out.push(WorkerEffect::ReleaseCode(owner));
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
}

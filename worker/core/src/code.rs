//! Jobs that run in a snapshot of their code: the ranks of an attempt wait until a copy of it is there, and
//! when the last of them has ended the copy is released.

use cohabit_types::{AttemptId, StartFailure, Time};

use crate::interface::{RankStart, WorkerEffect};
use crate::rank::RankState;
use crate::state::{CodeState, Worker};

impl Worker {
    /// Why no copy can be made for this attempt: one of another with its id, before the head was reset, is
    /// not finished.
    pub(crate) fn code_refusal(&self, attempt: AttemptId) -> Option<StartFailure> {
        let message =
            || StartFailure::NodeProblem("the code of an earlier attempt is still being removed".into());
        (self.code.get(&attempt) == Some(&CodeState::Abandoned)).then(message)
    }

    /// Orders the copy for the attempt of this rank, if its job runs in one.
    pub(crate) fn fetch_code(&mut self, start: RankStart, out: &mut Vec<WorkerEffect>) {
        if start.spec.code.is_some() {
            self.code.insert(start.rank.attempt, CodeState::Fetching);
            out.push(WorkerEffect::FetchCode(Box::new(start)));
        }
    }

    /// Whether nothing is missing of the code of this attempt.
    pub(crate) fn has_code(&self, attempt: AttemptId) -> bool {
        self.code.get(&attempt) != Some(&CodeState::Fetching)
    }

    /// The copy is there, or cannot be made. If nobody waits for it any more, it is released.
    pub(crate) fn code_fetched(
        &mut self,
        now: Time,
        attempt: AttemptId,
        result: Result<(), StartFailure>,
        out: &mut Vec<WorkerEffect>,
    ) {
        match self.code.get_mut(&attempt) {
            Some(state @ CodeState::Fetching) => *state = CodeState::Ready,
            Some(CodeState::Abandoned) => {
                self.code.remove(&attempt);
                return out.push(WorkerEffect::ReleaseCode(attempt));
            }
            Some(CodeState::Ready) | None => return,
        }
        let Err(failure) = result else { return };
        let waiting = self.ranks_of(attempt).filter(|(_, held)| matches!(held.state, RankState::Waiting(_)));
        for rank in waiting.map(|(rank, _)| *rank).collect::<Vec<_>>() {
            self.spawn_failed(now, rank, failure.clone(), out);
        }
    }
}

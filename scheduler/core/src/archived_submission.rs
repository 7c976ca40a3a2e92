//! What stays in memory of submissions that were archived: a summary of each.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cohabit_types::{JobId, JobSpec, Time};
use fnv::FnvHasher;

use crate::job::Job;
use crate::submission::SubmissionState;
use crate::terminal_state::TerminalState;

/// What a summary takes besides its texts and members, in bytes.
const SUMMARY_BYTES: u64 = 256;

/// What stays in memory of a submission that was archived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedSubmission {
    /// Who submitted it.
    pub user: String,
    /// Its name.
    pub name: String,
    /// The key under which the user may submit it again without a second job.
    pub idempotency_key: Option<String>,
    /// A digest of what it runs, to tell a repetition from another job under the same key.
    pub work: u64,
    /// When the last of its jobs ended.
    pub ended_at: Time,
    /// How it ended; an array as its worst member.
    pub state: TerminalState,
    /// The members of an array, in the order of their indices; empty for a plain job.
    pub members: Vec<EndedMembers>,
}

/// Members of an array with successive indices that ended in the same state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedMembers {
    /// The first index.
    pub first: u32,
    /// The last index.
    pub last: u32,
    /// How all of them ended.
    pub state: TerminalState,
}

/// The summaries, by number and by time.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Archive {
    pub(crate) submissions: BTreeMap<u64, Arc<ArchivedSubmission>>,
    pub(crate) by_end: BTreeSet<(Time, u64)>,
}

impl ArchivedSubmission {
    pub(crate) fn of(
        submission: &SubmissionState,
        jobs: &[(JobId, Arc<Job>)],
        ended_at: Time,
    ) -> ArchivedSubmission {
        let state = submission.end_state().expect("only what has ended is archived");
        let mut members: Vec<EndedMembers> = Vec::new();
        for (id, job) in jobs {
            let (Some(index), Some(end)) = (id.index, job.ended()) else { continue };
            match members.last_mut() {
                Some(run) if run.last.checked_add(1) == Some(index) && run.state == end.state => {
                    run.last = index;
                }
                Some(_) | None => members.push(EndedMembers { first: index, last: index, state: end.state }),
            }
        }
        members.shrink_to_fit();
        ArchivedSubmission {
            user: submission.user.clone(),
            name: submission.spec.name.clone(),
            idempotency_key: submission.idempotency_key.clone(),
            work: work_digest(&submission.spec),
            ended_at,
            state,
            members,
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> u64 {
        let key = self.idempotency_key.as_ref().map_or(0, String::len);
        let texts = self.user.len() + self.name.len() + key;
        SUMMARY_BYTES + (texts + size_of_val(self.members.as_slice())) as u64
    }

    /// How many jobs it has.
    pub(crate) fn jobs(&self) -> u64 {
        let members = self.members.iter().map(|run| u64::from(run.last - run.first) + 1);
        members.sum::<u64>().max(1)
    }

    /// How this job of it ended, or the array as a whole.
    pub(crate) fn state_of(&self, index: Option<u32>) -> Option<TerminalState> {
        match index {
            None => Some(self.state),
            Some(index) => {
                let run = self.members.partition_point(|run| run.last < index);
                self.members.get(run).filter(|run| run.first <= index).map(|run| run.state)
            }
        }
    }
}

/// Differs for jobs that run something else. It is stored, so it must not depend on the build.
pub(crate) fn work_digest(spec: &JobSpec) -> u64 {
    let mut hasher = FnvHasher::default();
    (&spec.entrypoint, &spec.array).hash(&mut hasher);
    if !spec.entries.is_empty() {
        // Archives have digests of jobs from before there were entries.
        spec.entries.hash(&mut hasher);
    }
    hasher.finish()
}

impl Archive {
    pub(crate) fn of(submissions: impl IntoIterator<Item = (u64, Arc<ArchivedSubmission>)>) -> Archive {
        let submissions: BTreeMap<u64, Arc<ArchivedSubmission>> = submissions.into_iter().collect();
        let by_end = submissions.iter().map(|(number, it)| (it.ended_at, *number)).collect();
        Archive { submissions, by_end }
    }

    pub(crate) fn get(&self, number: u64) -> Option<&ArchivedSubmission> {
        self.submissions.get(&number).map(Arc::as_ref)
    }

    /// A copy of the summaries, for a snapshot.
    pub(crate) fn submissions(&self) -> btree_map::IntoIter<u64, Arc<ArchivedSubmission>> {
        self.submissions.clone().into_iter()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &ArchivedSubmission)> {
        self.submissions.iter().map(|(number, it)| (*number, it.as_ref()))
    }

    pub(crate) fn insert(&mut self, number: u64, submission: ArchivedSubmission) {
        self.by_end.insert((submission.ended_at, number));
        self.submissions.insert(number, Arc::new(submission));
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Arc<ArchivedSubmission>> {
        let removed = self.submissions.remove(&number)?;
        self.by_end.remove(&(removed.ended_at, number));
        Some(removed)
    }

    /// Whether both orders have the same submissions.
    pub(crate) fn is_consistent(&self) -> bool {
        *self == Archive::of(self.submissions.clone())
    }
}

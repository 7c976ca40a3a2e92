//! A head in parts: what grows with the number of its jobs lies in parts, each of some of the jobs; the rest
//! is a head without any. So a snapshot is written and read piece by piece, and never lies in memory as a
//! whole.
//!
//! What follows from the jobs, such as who has ended, is in no part: it is put together again.

use std::collections::{BTreeMap, BTreeSet, btree_map, btree_set};
use std::iter::{Peekable, from_fn};
use std::sync::Arc;

use cohabit_types::JobId;
use serde::de::Error;
use serde::{Deserialize, Serialize};

use crate::head::{Head, VolatileState};
use crate::job::Job;
use crate::runs::{expand_runs, unless_same};
use crate::submission::Submission;

/// Some of a head's jobs, one after the other.
#[derive(Debug, Serialize, Deserialize)]
pub struct SnapshotPart {
    /// Those whose first job is here.
    submissions: BTreeMap<u64, Arc<Submission>>,
    /// None where a job is as the one before it, which may be in an earlier part.
    jobs: BTreeMap<JobId, Option<Arc<Job>>>,
    /// Those of the jobs that nothing but room keeps waiting.
    eligible: BTreeSet<JobId>,
}

/// All jobs of a head, part by part.
#[derive(Debug)]
pub struct SnapshotParts {
    submissions: Peekable<btree_map::IntoIter<u64, Arc<Submission>>>,
    jobs: btree_map::IntoIter<JobId, Arc<Job>>,
    eligible: Peekable<btree_set::IntoIter<JobId>>,
    /// The last job of the part before.
    before: Option<Arc<Job>>,
    size: usize,
}

impl Head {
    /// A copy of what a journal has to keep: the head without its jobs, and these in parts of so many. It
    /// shares them with this head.
    pub fn split_for_snapshot(&self, size: usize) -> (Head, SnapshotParts) {
        let rest = Head {
            config: self.config.clone(),
            last_number: self.last_number,
            last_ticket: self.last_ticket,
            open_ticket: self.open_ticket,
            plan_wanted: self.plan_wanted,
            learns: self.learns,
            reconsiders: self.reconsiders,
            started_at: self.started_at,
            wake: self.wake,
            submissions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            eligible: BTreeSet::new(),
            unended: BTreeSet::new(),
            ended: BTreeSet::new(),
            dependents: self.dependents.clone(),
            keys: BTreeMap::new(),
            nodes: self.nodes.clone(),
            nodes_joined: self.nodes_joined,
            alarms: self.alarms.clone(),
            live: VolatileState::default(),
        };
        let parts = SnapshotParts {
            submissions: self.submissions.clone().into_iter().peekable(),
            jobs: self.jobs.clone().into_iter(),
            eligible: self.eligible.clone().into_iter().peekable(),
            before: None,
            size,
        };
        (rest, parts)
    }

    /// The head of which these are all parts. One that was written as a whole has none.
    ///
    /// # Errors
    /// If the first part is missing.
    pub fn from_snapshot_parts<E: Error>(rest: Head, parts: Vec<SnapshotPart>) -> Result<Head, E> {
        if parts.is_empty() {
            return Ok(rest);
        }
        let (mut submissions, mut jobs, mut eligible) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            submissions.extend(part.submissions);
            jobs.extend(part.jobs);
            eligible.extend(part.eligible);
        }
        let jobs = expand_runs(jobs)?;
        let ended = jobs.iter().filter_map(|(id, job)| Some((job.ended_at?, *id))).collect();
        let unended = jobs.iter().filter(|(_, job)| job.ended_at.is_none()).map(|(id, _)| *id).collect();
        let mut keys: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (number, submission) in &submissions {
            if let Some(key) = &submission.idempotency_key {
                keys.entry(submission.user.clone()).or_default().insert(key.clone(), *number);
            }
        }
        let (submissions, eligible) = (submissions.into_iter().collect(), eligible.into_iter().collect());
        Ok(Head { submissions, jobs, eligible, unended, ended, keys, ..rest })
    }
}

impl Iterator for SnapshotParts {
    type Item = SnapshotPart;

    fn next(&mut self) -> Option<SnapshotPart> {
        let jobs = self.jobs.by_ref().take(self.size);
        let jobs: BTreeMap<_, _> = jobs.map(|(id, job)| (id, unless_same(&job, &mut self.before))).collect();
        let (last, _) = jobs.last_key_value()?;
        let submissions = from_fn(|| self.submissions.next_if(|(number, _)| *number <= last.number));
        let eligible = from_fn(|| self.eligible.next_if(|id| id <= last));
        Some(SnapshotPart { submissions: submissions.collect(), eligible: eligible.collect(), jobs })
    }
}

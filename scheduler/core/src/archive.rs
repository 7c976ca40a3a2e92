//! The archive: submissions that ended a while ago leave memory, except for a summary.
//!
//! The summary answers what has to be known at once: whether a job that others depend on completed, whose
//! job a name or a number means, whether a submission is a repetition. Everything else goes out in an
//! [`Effect::Archive`] and comes back with an [`Event::Restored`](crate::Event::Restored) when a user queues
//! such a job again. After the retention the summary goes too.

use std::collections::BTreeSet;
use std::iter::from_fn;
use std::ops::RangeInclusive;
use std::sync::Arc;

use cohabit_types::{JobChange, JobId, Principal, Span, Time};

use crate::archived_submission::ArchivedSubmission;
use crate::head::Head;
use crate::interface::{ArchivedPart, Effect};
use crate::job::Job;
use crate::requests::may_change;
use crate::snapshot_part::{MissingFirstJob, SnapshotPart, expand_runs};
use crate::submission::SubmissionState;
use crate::terminal_state::TerminalState;
use crate::transition::Transition;

/// One alarm archives about this many jobs at most, so that other events do not wait for long.
const JOBS_AT_ONCE: usize = 512;
/// Jobs in one part of an archived array.
const JOBS_PER_PART: usize = 512;

impl Transition<'_> {
    /// Archives submissions that ended long enough ago, and forgets those whose retention is over.
    pub(crate) fn archive_old_submissions(&mut self) {
        let (archive_after, retention) = (self.head.config.archive_after, self.head.config.retention);
        let mut room = JOBS_AT_ONCE;
        while let Some((ended_at, number)) = self.head.ended_submissions.first().copied()
            && room > 0
            && in_steps(ended_at, archive_after) <= self.now
        {
            room = room.saturating_sub(self.archive(number, ended_at));
        }
        while let Some((ended_at, number)) = self.head.archive.by_end.first().copied()
            && in_steps(ended_at, retention) <= self.now
        {
            self.forget_archived(number);
        }
    }

    /// Archives a submission all of whose jobs have ended. Returns how many jobs it had.
    fn archive(&mut self, number: u64, ended_at: Time) -> usize {
        self.head.ended_submissions.remove(&(ended_at, number));
        let Some(submission) = self.head.submissions.remove(&number) else { return 0 };
        let jobs = self.take_ended_jobs(number, &submission);
        self.head.volatile.traits.remove(&number);
        self.head.volatile.revisions.remove(&JobId::new(number));
        let summary = ArchivedSubmission::of(&submission, &jobs, ended_at);
        let history = jobs.iter().map(|(_, job)| job.history_weight()).sum();
        let usage = &mut self.head.volatile.usage;
        usage.count_history(&submission.user, 0, history);
        usage.remove(&submission);
        usage.add_archived(&summary);
        self.head.archive.insert(number, summary);
        for (part, jobs) in (0..).zip(jobs.chunks(JOBS_PER_PART)) {
            let content = SnapshotPart::of(number, &submission, jobs);
            self.effect(Effect::Archive(Box::new(ArchivedPart { number, part, ended_at, content })));
        }
        jobs.len()
    }

    /// Takes the jobs of a submission out of the head.
    fn take_ended_jobs(&mut self, number: u64, submission: &SubmissionState) -> Vec<(JobId, Arc<Job>)> {
        let of_submission = self.head.jobs.range(members_of(number));
        let jobs: Vec<_> = of_submission.map(|(id, job)| (*id, Arc::clone(job))).collect();
        for (id, job) in &jobs {
            self.head.jobs.remove(id);
            self.head.volatile.applications.forget_main(*id, submission);
            if let Some(end) = job.ended() {
                self.head.ended.remove(&(end.at, *id));
            }
            self.head.volatile.revisions.remove(id);
        }
        jobs
    }

    fn forget_archived(&mut self, number: u64) {
        let Some(forgotten) = self.head.archive.remove(number) else { return };
        self.head.volatile.usage.remove_archived(&forgotten);
        self.forget_idempotency_key(&forgotten.user, forgotten.idempotency_key.as_deref());
    }

    /// Takes a submission back into memory with all its jobs, if it is in the archive and was archived so.
    /// Another request may have brought it back before, its retention may be over, and what is on the disk
    /// may be of an earlier time.
    pub(crate) fn restored(&mut self, content: SnapshotPart) {
        let Ok(jobs) = expand_runs(content.jobs) else { return };
        let mut restored = BTreeSet::new();
        for (number, submission) in content.submissions {
            let ends = jobs.range(members_of(number)).filter_map(|(_, job)| Some(job.ended()?.at));
            let last_end = ends.max();
            if self.head.archive.get(number).map(|summary| summary.ended_at) != last_end {
                continue;
            }
            let Some(summary) = self.head.archive.remove(number) else { continue };
            self.head.volatile.usage.remove_archived(&summary);
            self.head.volatile.usage.add(&submission);
            self.head.submissions.insert(number, submission);
            restored.insert(number);
        }
        for (id, job) in jobs.into_iter().filter(|(id, _)| restored.contains(&id.number)) {
            self.count_history(id.number, job.history_weight(), 0);
            self.head.ended.extend(job.ended().map(|end| (end.at, id)));
            self.head.jobs.insert(id, job);
            self.head.remember_main(id);
        }
        let ends =
            restored.into_iter().filter_map(|number| Some((self.head.archivable_end(number)?, number)));
        let ends: Vec<(Time, u64)> = ends.collect();
        self.head.ended_submissions.extend(ends);
    }
}

impl Head {
    /// When the last job of a submission ended, if all have and it may be archived.
    pub(crate) fn archivable_end(&self, number: u64) -> Option<Time> {
        let submission = self.submissions.get(&number)?;
        if !submission.may_be_archived() {
            return None;
        }
        self.jobs.range(members_of(number)).filter_map(|(_, job)| Some(job.ended()?.at)).max()
    }

    /// Every submission that may be archived, with the time of its last end.
    pub(crate) fn all_ended_submissions(&self) -> BTreeSet<(Time, u64)> {
        let mut last_ends: Vec<(Time, u64)> = Vec::new();
        for (id, job) in &self.jobs {
            let Some(end) = job.ended() else { continue };
            match last_ends.last_mut() {
                Some((at, number)) if *number == id.number => *at = (*at).max(end.at),
                Some(_) | None => last_ends.push((end.at, id.number)),
            }
        }
        let may_be_archived =
            |number: u64| self.submissions.get(&number).is_some_and(|it| it.may_be_archived());
        last_ends.retain(|(_, number)| may_be_archived(*number));
        last_ends.into_iter().collect()
    }

    /// When the next submission has to be archived.
    pub(crate) fn archive_deadline(&self) -> Option<Time> {
        self.ended_submissions.first().map(|(ended_at, _)| in_steps(*ended_at, self.config.archive_after))
    }

    /// When the next archived submission has to be forgotten.
    pub(crate) fn archive_retention_deadline(&self) -> Option<Time> {
        self.archive.by_end.first().map(|(ended_at, _)| in_steps(*ended_at, self.config.retention))
    }

    /// How an archived job, or array as a whole, ended; none if it is not in the archive.
    pub fn archived_state(&self, job: JobId) -> Option<TerminalState> {
        self.archive.get(job.number)?.state_of(job.index)
    }

    /// The numbers of those submissions among these jobs that are in the archive and that this user may
    /// queue again, each once.
    pub fn archived_among(&self, by: &Principal, jobs: &[JobId]) -> BTreeSet<u64> {
        let may_requeue = |job: &&JobId| {
            let archived = self.archive.get(job.number);
            archived.is_some_and(|it| may_change(by, &it.user, JobChange::Requeue, **job).is_ok())
        };
        jobs.iter().filter(may_requeue).map(|job| job.number).collect()
    }

    /// A head that knows nothing but this archived submission, to read what it was like.
    ///
    /// # Errors
    /// If the first job refers to one before it.
    pub fn of_archived(content: SnapshotPart) -> Result<Head, MissingFirstJob> {
        let (rest, _) = Head::new().split_for_snapshot(1);
        Head::from_snapshot(rest, vec![content])
    }

    /// Every submission in memory or in the archive with its user and its name, the newest first.
    pub(crate) fn newest_submissions(&self) -> impl Iterator<Item = (u64, &str, &str)> {
        let in_memory = self.submissions.iter().rev();
        let mut in_memory =
            in_memory.map(|(number, it)| (*number, it.user.as_str(), it.spec.name.as_str())).peekable();
        let archived = self.archive.submissions.iter().rev();
        let mut archived =
            archived.map(|(number, it)| (*number, it.user.as_str(), it.name.as_str())).peekable();
        from_fn(move || match (in_memory.peek(), archived.peek()) {
            (Some(newer), Some(other)) if newer.0 < other.0 => archived.next(),
            (Some(_), _) => in_memory.next(),
            (None, _) => archived.next(),
        })
    }

    /// The numbers in this range of the submissions in memory or in the archive, at most so many.
    pub(crate) fn numbers_in(&self, range: RangeInclusive<u64>, most: usize) -> Vec<u64> {
        let in_memory = self.submissions.range(range.clone()).map(|(number, _)| *number).take(most);
        let archived = self.archive.submissions.range(range).map(|(number, _)| *number).take(most);
        let mut numbers: Vec<u64> = in_memory.chain(archived).collect();
        numbers.sort_unstable();
        numbers.truncate(most);
        numbers
    }
}

/// The ids of the jobs of a submission.
fn members_of(number: u64) -> RangeInclusive<JobId> {
    JobId::new(number)..=JobId::member(number, u32::MAX)
}

/// When something that lasts so long ends, in steps of a sixtieth of it: one alarm serves for many jobs.
fn in_steps(from: Time, lasts: Span) -> Time {
    let step = (lasts.as_micros() / 60).max(1);
    Time::from_micros((from + lasts).as_micros().div_ceil(step).saturating_mul(step))
}

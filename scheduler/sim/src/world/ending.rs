//! Whether everything has come to its end, and whether the accounts are right then.
//!
//! In the quiet phase somebody with an admin's rights tidies up every ten minutes, and looks after GPUs, so
//! that nothing waits for a person.

use cohabit_types::{JobChange, JobEvent, JobId, JobRecord, Request};

use super::{CLEAN_UP_INTERVAL, World};
use crate::checks;
use crate::failure::{FailureKind, SimFailure};
use crate::happening::SimEvent;
#[cfg(feature = "learned")]
use crate::machine::SharedRunTime;
use crate::node::SimNode;

impl World<'_> {
    /// Looks whether all has ended; if not, releases what is held, cancels what is endless, and looks again.
    pub(super) fn clean_up(&mut self) -> Result<(), SimFailure> {
        let left = self.left();
        let reasons = checks::reasons(self.head.head(), self.head_now());
        self.invariant(reasons)?;
        if left.is_empty() {
            self.finished = true;
            return Ok(());
        }
        if self.now >= self.settings.deadline_at {
            return Err(self.failure(FailureKind::NeverEnded, left.join("; ")));
        }
        self.agenda.put(self.now + CLEAN_UP_INTERVAL, SimEvent::CleanUp);
        self.restore_gpus()?;
        for node in 0..self.nodes.len() {
            self.administer(Request::Resume(self.nodes[node].id.to_string()));
        }
        self.administer(Request::Change(JobChange::Cancel, self.clients.endless()));
        self.administer(Request::Change(JobChange::Release, self.clients.accepted()));
        Ok(())
    }

    /// What has not come to its end.
    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        if !self.head.is_up() {
            left.push("the head is down".to_owned());
        }
        if !self.clients.all_answered() {
            left.push("a submission was never answered".to_owned());
        }
        left.extend(
            self.live_jobs().map(|job| checks::describe_unended(self.head.head(), self.head_now(), job)),
        );
        left.extend(self.nodes.iter().filter_map(SimNode::unfinished));
        left
    }

    fn live_jobs(&self) -> impl Iterator<Item = JobId> {
        self.head.head().live_jobs()
    }

    /// When all has ended: the journal tells the same, the accounts are right, every question has an answer.
    pub(super) fn verify(&mut self) -> Result<(), SimFailure> {
        self.head.recovered(self.head_now())?;
        let head = self.head.head();
        let jobs = self.clients.accepted();
        let known = self.reference.check_all(self.head_now(), head);
        let checked = known
            .and_then(|()| checks::check_ends(head, self.head_now(), self.settings.retention, &jobs))
            .and_then(|()| self.check_booked_device_time())
            .and_then(|()| checks::outcomes(head, self.head_now(), &self.nodes))
            .and_then(|()| checks::victims(head, self.head_now(), &self.nodes))
            .and_then(|()| checks::check_retries(head, self.head_now(), &jobs))
            .and_then(|()| checks::check_cancellations(head, self.head_now(), self.clients.cancelled()))
            .and_then(|()| checks::check_answers(head, self.head_now(), &jobs));
        self.invariant(checked)
    }

    /// By a clock that missed some of the time, less may be booked than was used.
    fn check_booked_device_time(&self) -> Result<(), String> {
        match self.head.clock.missed_nothing() {
            true => checks::device_time(self.head.head(), self.head_now(), &self.nodes),
            false => Ok(()),
        }
    }

    /// The first submission that was refused, and why.
    #[cfg(feature = "learned")]
    pub(crate) fn first_refused(&self) -> Option<(usize, String)> {
        self.clients.first_refused()
    }

    /// Device time that machines measured of each job number, in thousandths of a device times microseconds.
    #[cfg(feature = "learned")]
    pub(crate) fn device_time(&self) -> std::collections::BTreeMap<u64, u64> {
        let mut used = std::collections::BTreeMap::new();
        for (attempt, time) in self.nodes.iter().flat_map(|node| &node.machine.accounts().device_time) {
            *used.entry(attempt.job.number).or_default() += time;
        }
        used
    }

    /// For how long ranks ran that may have neighbours.
    #[cfg(feature = "learned")]
    pub(crate) fn shared_run_time(&self) -> SharedRunTime {
        self.nodes.iter().map(|node| node.machine.accounts().shared_run_time).sum()
    }

    /// What is known of everything that was accepted.
    pub(crate) fn records(&self) -> Vec<JobRecord> {
        let head = self.head.head();
        self.clients.accepted().into_iter().filter_map(|job| head.record(self.head_now(), job)).collect()
    }

    /// The last chapters of the jobs that have not ended, or else of the last ones accepted.
    pub(crate) fn chapters(&self) -> Vec<String> {
        let head = self.head.head();
        let mut jobs: Vec<JobId> = self.live_jobs().take(5).collect();
        if jobs.is_empty() {
            jobs = self.clients.accepted().into_iter().rev().take(3).collect();
        }
        let told = |job: JobId| {
            let story = head.job_history(job);
            let last = &story[story.len().saturating_sub(12)..];
            let line = |it: &JobEvent| format!("{:>14.6}  job {job}: {it}", it.at.as_secs_f64());
            last.iter().map(line).collect::<Vec<_>>()
        };
        jobs.into_iter().flat_map(told).collect()
    }
}

//! Whether everything has ended, and whether the final state is consistent.
//!
//! In the quiet phase an administrator releases, cancels and repairs every ten minutes, so that nothing waits
//! for a person.

use std::collections::BTreeSet;

use cohabit_scheduler_core::Head;
use cohabit_types::{JobChange, JobEvent, JobId, JobRecord, Request};

use super::{CLEAN_UP_INTERVAL, World};
use crate::checks;
use crate::failure::{FailureKind, SimFailure};
use crate::node::SimNode;
use crate::sim_event::SimEvent;
#[cfg(feature = "learned")]
use crate::{share_speed::ShareSpeed, slowdown_tracker::SharedRunTime};

impl World<'_> {
    /// Ends the run if everything has ended. If not, releases held jobs, cancels endless ones, repairs GPUs,
    /// and checks again later.
    pub(super) fn clean_up(&mut self) -> Result<(), SimFailure> {
        let left = self.list_unfinished();
        let reasons = checks::check_reasons(self.head.head(), self.head_now());
        self.invariant(reasons)?;
        if left.is_empty() {
            self.finished = true;
            return Ok(());
        }
        if self.now >= self.settings.deadline_at {
            return Err(self.failure(FailureKind::NeverEnded, left.join("; ")));
        }
        self.queue.put(self.now + CLEAN_UP_INTERVAL, SimEvent::CleanUp);
        self.restore_gpus()?;
        for node in 0..self.nodes.len() {
            self.administer(Request::Resume(self.nodes[node].id.to_string()));
        }
        self.administer(Request::Change(JobChange::Cancel, self.clients.endless()));
        self.administer(Request::Change(JobChange::Release, self.clients.accepted()));
        self.administer(Request::Change(JobChange::Cancel, self.jobs_of_strangers()));
        Ok(())
    }

    /// Describes everything that has not ended.
    fn list_unfinished(&self) -> Vec<String> {
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
        left.extend(self.nodes.iter().filter_map(SimNode::describe_unfinished));
        left
    }

    /// What the hostile user still has: it never ends by itself.
    fn jobs_of_strangers(&self) -> Vec<JobId> {
        if !self.clients.all_answered() {
            return Vec::new();
        }
        let known: BTreeSet<u64> = self.clients.accepted().into_iter().map(|job| job.number).collect();
        self.live_jobs().filter(|job| !known.contains(&job.number)).collect()
    }

    fn live_jobs(&self) -> impl Iterator<Item = JobId> {
        self.head.head().live_jobs()
    }

    /// Checks the final state: the journal leads to it, the booked times are right, and every query is
    /// answered.
    pub(super) fn verify_final_state(&mut self) -> Result<(), SimFailure> {
        self.head.recover(self.head_now())?;
        let jobs = self.clients.accepted();
        let head = &self.head.whole(self.head_now())?;
        let known = self.reference.check_all(self.head_now(), head, &self.nodes);
        let checked = known
            .and_then(|()| checks::check_ends(head, self.head_now(), self.settings.retention, &jobs))
            .and_then(|()| self.check_booked_device_time(head))
            .and_then(|()| checks::check_outcomes(head, self.head_now(), &self.nodes))
            .and_then(|()| checks::check_victims(head, self.head_now(), &self.nodes))
            .and_then(|()| checks::check_finished_unseen(head, self.head_now(), &self.nodes))
            .and_then(|()| checks::check_retries(head, self.head_now(), &jobs))
            .and_then(|()| {
                let ordered_at = |attempt| self.reference.ordered_in_advance_at(attempt);
                checks::check_cancellations(head, self.head_now(), self.clients.cancelled(), ordered_at)
            })
            .and_then(|()| self.check_code_copies())
            .and_then(|()| checks::check_answers(head, self.head_now(), &jobs));
        self.invariant(checked)
    }

    /// Checks the booked device time, unless the head's clock missed time: then less may be booked than was
    /// used.
    fn check_booked_device_time(&self, head: &Head) -> Result<(), String> {
        match self.head.clock.missed_nothing() {
            true => {
                let first = |attempt| self.reference.first_before(attempt);
                checks::check_device_time(head, self.head_now(), &self.nodes, first)
            }
            false => Ok(()),
        }
    }

    /// The first submission that was refused, with the reason.
    #[cfg(feature = "learned")]
    pub(crate) fn first_refused(&self) -> Option<(usize, String)> {
        self.clients.first_refused()
    }

    /// Device time that the machines measured for each job number: thousandths of a device, times
    /// microseconds.
    #[cfg(feature = "learned")]
    pub(crate) fn device_time(&self) -> std::collections::BTreeMap<u64, u64> {
        let mut used = std::collections::BTreeMap::new();
        for (attempt, time) in self.nodes.iter().flat_map(|node| &node.machine.accounts().device_time) {
            *used.entry(attempt.job.number).or_default() += time;
        }
        used
    }

    /// Run time of the ranks that were allowed to share a device.
    #[cfg(feature = "learned")]
    pub(crate) fn shared_run_time(&self) -> SharedRunTime {
        self.nodes.iter().map(|node| node.machine.accounts().shared_run_time).sum()
    }

    /// How fast the ranks were with their shares of cores and host memory.
    #[cfg(feature = "learned")]
    pub(crate) fn share_speed(&self) -> ShareSpeed {
        self.nodes.iter().map(|node| node.machine.accounts().share_speed).sum()
    }

    /// How often the share of running ranks was changed.
    #[cfg(feature = "learned")]
    pub(crate) fn allotments(&self) -> u64 {
        self.nodes.iter().map(|node| node.machine.accounts().allotments).sum()
    }

    /// The records of everything that was accepted.
    pub(crate) fn records(&self) -> Vec<JobRecord> {
        let head = self.head.head();
        self.clients.accepted().into_iter().filter_map(|job| head.at(self.head_now()).record(job)).collect()
    }

    /// The last events of the jobs that have not ended, or else of the last accepted jobs.
    pub(crate) fn last_job_events(&self) -> Vec<String> {
        let head = self.head.head();
        let mut jobs: Vec<JobId> = self.live_jobs().take(5).collect();
        if jobs.is_empty() {
            jobs = self.clients.accepted().into_iter().rev().take(3).collect();
        }
        let last_events = |job: JobId| {
            let history = head.job_history(job);
            let last = &history[history.len().saturating_sub(12)..];
            let line = |it: &JobEvent| format!("{:>14.6}  job {job}: {it}", it.at.as_secs_f64());
            last.iter().map(line).collect::<Vec<_>>()
        };
        jobs.into_iter().flat_map(last_events).collect()
    }
}

//! The inputs of the reference model: accepted jobs, changes that users asked for, and orders of the head.

use std::collections::BTreeSet;

use cohabit_policy::{Action, Plan};
use cohabit_scheduler_core::{Effect, Event};
use cohabit_types::{
    AttemptId, ChangeResult, ClientRequestId, JobChange, JobId, JobPhase, JobSpec, JobState, NodeId, Order,
    RankId, Reply, Report, Request, Time, WorkerKey,
};

use super::job::ReferenceJob;
use super::{HandledEvent, JobEnd, ReferenceModel};

impl ReferenceModel {
    /// Applies an event and returns the jobs that are new or that users changed.
    pub(super) fn apply_event(&mut self, it: &HandledEvent<'_>) -> Result<BTreeSet<JobId>, String> {
        self.note_given_back(it);
        self.apply_orders(it.effects)?;
        match it.event {
            Event::Client(client, by, request) => match (request, answer(*client, it.effects)) {
                (Request::Submit(submit), Some(Reply::Accepted { job, .. })) => {
                    self.users.entry(job.number).or_insert_with(|| by.user.clone());
                    return self.accept(*job, &submit.spec);
                }
                (Request::Change(change, _), Some(Reply::Changed(verdicts))) => {
                    return Ok(self.change(*change, verdicts));
                }
                (Request::Reserve(_), Some(Reply::Reservation(made))) => self.reserved.add(made),
                (Request::CancelReservation(number), Some(Reply::Reservation(_))) => {
                    self.reserved.cancel(*number);
                }
                (Request::Resume(_), Some(Reply::Node(name))) => self.reserved.resume(name, it.at),
                _ => {}
            },
            Event::Planned(_, plan) => self.apply_plan(plan, it.at),
            Event::HeadStarted(_) => self.head_started_at = it.at,
            // One of an earlier link counts for nothing.
            Event::Report(key, report) if it.is_linked(*key) => {
                self.note_idleness(*key, report, it.at);
            }
            Event::Joined(key, inventory) if it.is_linked(*key) => {
                self.names.entry(key.node).or_default().insert(inventory.name.clone());
                let ordered = &self.ordered;
                self.idle.forget(|attempt| ordered.get(&attempt.rank(0)) == Some(&key.node));
            }
            Event::Alarm => self.stop_idle_at_last(it.at),
            Event::Joined(..)
            | Event::Lost(..)
            | Event::Report(..)
            | Event::InterferenceUpdated
            | Event::ClockSet(_)
            | Event::Restored(_)
            | Event::BackupRestored { .. } => {}
        }
        Ok(BTreeSet::new())
    }

    fn note_idleness(&mut self, key: WorkerKey, report: &Report, at: Time) {
        let (Report::Idle { attempt, .. } | Report::Active(attempt)) = report else { return };
        if self.ordered.get(&attempt.rank(0)) == Some(&key.node) {
            self.idle.note(report, at);
        }
    }

    /// Whatever has done nothing for too long may be stopped now.
    fn stop_idle_at_last(&mut self, at: Time) {
        let stop = self.config.idle_stop;
        for (id, job) in &mut self.jobs {
            let live = job.observed.attempts.last().map(|it| id.attempt(it.number));
            job.requests.stopped_as_idle |= self.specs[&id.number].interactive
                && live.is_some_and(|live| self.idle.has_to_stop(live, stop, at));
        }
    }

    fn apply_plan(&mut self, plan: &Plan, at: Time) {
        for action in &plan.actions {
            match action {
                Action::Preempt { job, .. } => {
                    self.jobs.entry(*job).and_modify(|job| job.requests.preempted = true);
                }
                Action::Reclaim { job, .. } => {
                    self.jobs.entry(*job).and_modify(|job| job.requests.reclaimed = true);
                }
                Action::StopIdle { job: id, .. } => {
                    let (stop, is_interactive) = (self.config.idle_stop, self.specs[&id.number].interactive);
                    let Some(job) = self.jobs.get_mut(id) else { continue };
                    let live = job.observed.attempts.last().map(|it| id.attempt(it.number));
                    job.requests.stopped_as_idle |=
                        is_interactive && live.is_some_and(|live| self.idle.may_be_stopped(live, stop, at));
                }
                Action::Place { .. } | Action::Allot { .. } => {}
            }
        }
    }

    /// Records an accepted submission. A repeated submission must get the job that it got before.
    fn accept(&mut self, id: JobId, spec: &JobSpec) -> Result<BTreeSet<JobId>, String> {
        match self.specs.insert(id.number, spec.clone()) {
            Some(known) if known == *spec => return Ok(BTreeSet::new()),
            Some(_) => return Err(format!("a second submission became job {id}")),
            None => {}
        }
        let jobs = members(id, spec);
        for job in &jobs {
            self.jobs.insert(*job, ReferenceJob::new(spec));
        }
        Ok(jobs)
    }

    /// Applies a change to its jobs; a whole array stands for all its members.
    fn change(&mut self, change: JobChange, verdicts: &[(JobId, ChangeResult)]) -> BTreeSet<JobId> {
        let done = verdicts.iter().filter(|(_, verdict)| *verdict == ChangeResult::Done);
        let requests: BTreeSet<JobId> = done.flat_map(|(id, _)| self.resolve_targets(*id)).collect();
        for id in &requests {
            let may_begin = self.prefetched.contains_key(id);
            let Some(job) = self.jobs.get_mut(id) else { continue };
            match change {
                JobChange::Cancel | JobChange::Kill | JobChange::Withdraw => {
                    job.requests.cancelled |= job.is_live();
                }
                JobChange::Hold => {
                    job.requests.held |= job.observed.state.phase() == JobPhase::Waiting && !may_begin;
                }
                JobChange::Release => job.requests.held = false,
                JobChange::Requeue => {
                    // A job that is being stopped for good is not queued again.
                    job.requests.requeued = true;
                    if !job.is_live() {
                        job.reset_after_requeue();
                    }
                }
            }
        }
        requests
    }

    fn resolve_targets(&self, id: JobId) -> BTreeSet<JobId> {
        self.specs.get(&id.number).map_or_else(BTreeSet::new, |spec| match id.index {
            Some(_) => [id].into(),
            None => members(id, spec),
        })
    }

    /// Checks that no rank is ordered to two nodes.
    fn apply_orders(&mut self, effects: &[Effect]) -> Result<(), String> {
        self.node_ranks.extend(effects.iter().filter_map(node_rank_ordered));
        for (rank, node) in effects.iter().flat_map(ranks_ordered) {
            match self.ordered.insert(rank, node) {
                Some(earlier) if earlier != node => {
                    return Err(format!(
                        "{rank} is ordered to node {node}, but was ordered to node {earlier} before"
                    ));
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// Records how jobs ended, and arrays with their last member.
    pub(super) fn record_ends(&mut self, changed: &BTreeSet<JobId>) {
        let arrays: BTreeSet<JobId> =
            changed.iter().filter(|id| id.index.is_some()).map(|id| JobId::new(id.number)).collect();
        for id in changed.iter().chain(&arrays) {
            let states = match self.jobs.get(id) {
                Some(job) => vec![job.observed.state],
                None => {
                    self.resolve_targets(*id).iter().map(|member| self.jobs[member].observed.state).collect()
                }
            };
            if states.iter().all(|state| state.is_terminal()) {
                let well = states.iter().all(|state| *state == JobState::Completed);
                self.ends.entry(*id).or_default().insert(if well {
                    JobEnd::Succeeded
                } else {
                    JobEnd::Failed
                });
            }
        }
    }
}

fn members(id: JobId, spec: &JobSpec) -> BTreeSet<JobId> {
    match &spec.array {
        Some(array) => array.indices().map(|index| JobId::member(id.number, index)).collect(),
        None => [id].into(),
    }
}

/// The reply to this client.
fn answer(client: ClientRequestId, effects: &[Effect]) -> Option<&Reply> {
    effects.iter().find_map(|effect| match effect {
        Effect::Answer(to, reply) if *to == client => Some(reply),
        Effect::Answer(..)
        | Effect::SendOrder(..)
        | Effect::Publish(..)
        | Effect::RecordMisfit(_)
        | Effect::RecordUsage(_)
        | Effect::AddToFeed(_)
        | Effect::Account(_)
        | Effect::Archive(_)
        | Effect::Plan(_)
        | Effect::Close(..) => None,
    })
}

/// The number of a node in an attempt of which it is ordered to start ranks.
fn node_rank_ordered(effect: &Effect) -> Option<((AttemptId, NodeId), u32)> {
    let Effect::SendOrder(key, Order::Run(order)) = effect else { return None };
    Some(((order.attempt, key.node), order.ranks.first()?.node_rank))
}

/// The ranks that a node is ordered to start.
fn ranks_ordered(effect: &Effect) -> Vec<(RankId, NodeId)> {
    match effect {
        Effect::SendOrder(key, Order::Run(order)) => {
            order.ranks.iter().map(|run| (order.attempt.rank(run.rank), key.node)).collect()
        }
        Effect::SendOrder(..)
        | Effect::Answer(..)
        | Effect::Publish(..)
        | Effect::RecordMisfit(_)
        | Effect::RecordUsage(_)
        | Effect::AddToFeed(_)
        | Effect::Account(_)
        | Effect::Archive(_)
        | Effect::Plan(_)
        | Effect::Close(..) => Vec::new(),
    }
}

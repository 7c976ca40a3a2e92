//! A reference model beside the head: what may be true of each job.
//!
//! It knows no queue, no plan and no state of a node. It uses the replies to clients, the orders of the head,
//! the reports of workers and what the machines really ran, and examines every job that an event changed. A
//! mistake that the head and the journal make together is therefore found here.
//!
//! ```text
//!  event, effects ──> inputs (replies, orders) ─┐
//!  Head::record ─────> observed ────────────────┼─> rules · end_rules · node_holdings ──> violation
//!  machines ─────────> true_outcome ────────────┘
//! ```

mod end_rules;
mod failure_cause;
mod idle_attempts;
mod inputs;
mod job;
mod node_holdings;
mod observed;
mod prefetch;
mod reserved_nodes;
mod rules;
mod succession;
mod true_outcome;

use std::collections::{BTreeMap, BTreeSet};

use cohabit_scheduler_core::{Config, Effect, Event, Head};
use cohabit_types::{AttemptId, JobId, JobSpec, JobState, NodeId, RankId, Report, Time, WorkerKey};

use self::idle_attempts::IdleAttempts;
use self::job::ReferenceJob;
use self::observed::ObservedJob;
use self::prefetch::{BegunInAdvance, OrderedInAdvance};
use self::reserved_nodes::ReservedNodes;
use crate::node::SimNode;

/// The state of the reference model.
#[derive(Debug)]
pub(crate) struct ReferenceModel {
    config: Config,
    /// The accepted submissions, by job number.
    specs: BTreeMap<u64, JobSpec>,
    /// Single jobs and members of arrays.
    jobs: BTreeMap<JobId, ReferenceJob>,
    /// The jobs that have not ended.
    live: BTreeSet<JobId>,
    /// Every way in which a job or a whole array has ever ended.
    ends: BTreeMap<JobId, BTreeSet<JobEnd>>,
    /// The node to which each rank was ordered.
    ordered: BTreeMap<RankId, NodeId>,
    /// What workers have in advance.
    prefetched: BTreeMap<JobId, OrderedInAdvance>,
    /// What has begun so.
    begun_in_advance: BTreeMap<AttemptId, BegunInAdvance>,
    /// The number of each node in the attempts that were ordered there.
    node_ranks: BTreeMap<(AttemptId, NodeId), u32>,
    /// The user of each submission, by job number.
    users: BTreeMap<u64, String>,
    /// The names for which each node has asked: another node may have had them.
    names: BTreeMap<NodeId, BTreeSet<String>>,
    /// Which nodes are reserved.
    reserved: ReservedNodes,
    /// Which attempts do nothing.
    idle: IdleAttempts,
    /// When the head was last started.
    head_started_at: Time,
}

/// The end of a job, as far as its dependants care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JobEnd {
    Succeeded,
    Failed,
}

/// An event that the head has handled, with the state of the cluster after it.
#[derive(Clone, Copy)]
pub(crate) struct HandledEvent<'a> {
    /// The true time.
    pub(crate) now: Time,
    /// The time of the event by the head's clock.
    pub(crate) at: Time,
    pub(crate) event: &'a Event,
    pub(crate) effects: &'a [Effect],
    pub(crate) head: &'a Head,
    pub(crate) nodes: &'a [SimNode],
}

impl HandledEvent<'_> {
    /// Whether this is the present link of its worker.
    fn is_linked(&self, key: WorkerKey) -> bool {
        !self.head.changes_nothing(key, &Report::Progress(Vec::new()))
    }
}

/// A job before and after an event.
struct JobTransition {
    id: JobId,
    before: ObservedJob,
    after: ObservedJob,
}

impl ReferenceModel {
    pub(crate) fn new(config: Config) -> ReferenceModel {
        ReferenceModel {
            config,
            specs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            live: BTreeSet::new(),
            ends: BTreeMap::new(),
            ordered: BTreeMap::new(),
            prefetched: BTreeMap::new(),
            begun_in_advance: BTreeMap::new(),
            node_ranks: BTreeMap::new(),
            users: BTreeMap::new(),
            names: BTreeMap::new(),
            reserved: ReservedNodes::default(),
            idle: IdleAttempts::default(),
            head_started_at: Time::EPOCH,
        }
    }

    /// Checks an event that the head has handled.
    ///
    /// # Errors
    /// With the first rule that was broken.
    pub(crate) fn check_event(&mut self, it: &HandledEvent<'_>) -> Result<(), String> {
        let mut changed = self.apply_event(it)?;
        changed.extend(it.effects.iter().filter_map(published));
        changed.retain(|id| self.jobs.contains_key(id));
        self.check_reserved_nodes(it)?;
        if changed.is_empty() {
            return Ok(());
        }
        let steps = self.observe_changes(it, &changed)?;
        steps.iter().try_for_each(|step| self.check_step(it, step))?;
        self.note_begun();
        self.check_prefetches(it)?;
        self.check_live(it.head)?;
        self.check_node_holdings(it.head, it.nodes)
    }

    /// Checks that a machine may start this rank.
    ///
    /// # Errors
    /// If the head never ordered this node to start it.
    pub(crate) fn check_spawn(&self, node: NodeId, rank: RankId) -> Result<(), String> {
        match self.ordered.get(&rank) {
            Some(ordered) if *ordered == node => Ok(()),
            Some(ordered) => Err(format!("{rank} starts on node {node}, but was ordered to {ordered}")),
            None => Err(format!("{rank} starts on node {node}, but was never ordered")),
        }
    }

    /// Checks that every job is as it was last observed, unless it ended long ago and may be forgotten.
    ///
    /// # Errors
    /// If one is not.
    pub(crate) fn check_all(&self, now: Time, head: &Head, nodes: &[SimNode]) -> Result<(), String> {
        for (id, job) in &self.jobs {
            match head.at(now).record(*id) {
                Some(record) if ObservedJob::of(&record) == job.observed => {}
                Some(_) => return Err(format!("job {id} has changed without a published event")),
                None if job.may_be_forgotten(now, self.config.retention) => {}
                None => return Err(format!("job {id} was accepted, and is forgotten")),
            }
        }
        self.check_live(head)?;
        self.check_node_holdings(head, nodes)
    }

    /// Observes the changed jobs and returns each before and after the event.
    fn observe_changes(
        &mut self,
        it: &HandledEvent<'_>,
        changed: &BTreeSet<JobId>,
    ) -> Result<Vec<JobTransition>, String> {
        let mut steps = Vec::new();
        for id in changed {
            let job = self.jobs.get_mut(id).expect("it is known");
            let after = match it.head.at(it.at).record(*id) {
                Some(record) => ObservedJob::of(&record),
                None if job.may_be_forgotten(it.at, self.config.retention) => continue,
                None => return Err(format!("job {id} was accepted, and is forgotten")),
            };
            let before = std::mem::replace(&mut job.observed, after.clone());
            job.note(&before, &after);
            match after.state.is_terminal() {
                true => _ = self.live.remove(id),
                false => _ = self.live.insert(*id),
            }
            steps.push(JobTransition { id: *id, before, after });
        }
        self.record_ends(changed);
        Ok(steps)
    }

    /// When the alarms have been handled, nobody is where a reservation keeps them off.
    fn check_reserved_nodes(&self, it: &HandledEvent<'_>) -> Result<(), String> {
        if *it.event != Event::Alarm {
            return Ok(());
        }
        for id in &self.live {
            let Some(record) = it.head.at(it.at).record(*id) else { continue };
            let job = ObservedJob::of(&record);
            if let Some(attempt) = job.live().filter(|_| job.state == JobState::Running)
                && self.reserved.forbid_presence(&self.users[&id.number], attempt, it.at)
            {
                return Err(format!("job {id} goes on where a node that is reserved for others is used"));
            }
        }
        Ok(())
    }

    fn check_live(&self, head: &Head) -> Result<(), String> {
        let known: BTreeSet<JobId> = head.live_jobs().collect();
        match known.symmetric_difference(&self.live).next() {
            None => Ok(()),
            Some(id) if known.contains(id) => Err(format!("job {id} is live in the head, but has ended")),
            Some(id) => Err(format!("job {id} has not ended, but is not live in the head")),
        }
    }
}

/// The job of an effect that is published to watchers.
const fn published(effect: &Effect) -> Option<JobId> {
    match effect {
        Effect::Publish(job, _) => Some(*job),
        Effect::SendOrder(..)
        | Effect::Answer(..)
        | Effect::RecordMisfit(_)
        | Effect::RecordUsage(_)
        | Effect::AddToFeed(_)
        | Effect::Account(_)
        | Effect::Archive(_)
        | Effect::Plan(_)
        | Effect::Close(..) => None,
    }
}

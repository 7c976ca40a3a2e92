//! A reference model beside the head: for each job, what may be true of it, and nothing else.
//!
//! It knows no queue, no plan and no state of a node. It goes by what clients were answered, which orders
//! went out, which reports came in and what machines really ran, and looks at every job that an event
//! changed. So a mistake that head and journal make together is seen here.
//!
//! ```text
//!  event, effects ──> heard (answers, orders) ─┐
//!  Head::record ─────> seen ───────────────────┼─> rules · verdict · ledger ──> what is wrong
//!  machines ─────────> truth ──────────────────┘
//! ```

mod end_rules;
mod failure_cause;
mod inputs;
mod job;
mod node_holdings;
mod observed;
mod rules;
mod true_outcome;

use std::collections::{BTreeMap, BTreeSet};

use cohabit_scheduler_core::{Config, Effect, Event, Head};
use cohabit_types::{JobId, JobSpec, NodeId, RankId, Time};

use self::job::ReferenceJob;
use self::observed::ObservedJob;
use crate::node::SimNode;

/// What the reference knows.
#[derive(Debug)]
pub(crate) struct ReferenceModel {
    config: Config,
    /// What was accepted, by number.
    specs: BTreeMap<u64, JobSpec>,
    /// Plain jobs and members of arrays.
    jobs: BTreeMap<JobId, ReferenceJob>,
    /// Those that have not ended.
    live: BTreeSet<JobId>,
    /// Every way in which a job, or an array as a whole, ever ended.
    ends: BTreeMap<JobId, BTreeSet<JobEnd>>,
    /// The node to which each rank was ordered.
    ordered: BTreeMap<RankId, NodeId>,
    /// When the head was last started.
    head_started_at: Time,
}

/// What those that depend on a job have to know of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JobEnd {
    Well,
    Badly,
}

/// An event that the head has handled, and the world as it is then.
#[derive(Clone, Copy)]
pub(crate) struct HandledEvent<'a> {
    pub(crate) at: Time,
    pub(crate) event: &'a Event,
    pub(crate) effects: &'a [Effect],
    pub(crate) head: &'a Head,
    pub(crate) nodes: &'a [SimNode],
}

/// A job before and after an event.
struct JobTransition {
    id: JobId,
    before: ObservedJob,
    after: ObservedJob,
}

impl ReferenceModel {
    pub(crate) const fn new(config: Config) -> ReferenceModel {
        ReferenceModel {
            config,
            specs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            live: BTreeSet::new(),
            ends: BTreeMap::new(),
            ordered: BTreeMap::new(),
            head_started_at: Time::EPOCH,
        }
    }

    /// The head has handled an event.
    ///
    /// # Errors
    /// With what may not be.
    pub(crate) fn handled(&mut self, it: &HandledEvent<'_>) -> Result<(), String> {
        let mut changed = self.apply_event(it)?;
        changed.extend(it.effects.iter().filter_map(published));
        changed.retain(|id| self.jobs.contains_key(id));
        if changed.is_empty() {
            return Ok(());
        }
        let steps = self.look(it, &changed)?;
        steps.iter().try_for_each(|step| self.check_step(it, step))?;
        self.check_live(it.head)?;
        self.check_ledger(it.head)
    }

    /// A machine is about to start a rank.
    ///
    /// # Errors
    /// If the head never told that node to.
    pub(crate) fn spawns(&self, node: NodeId, rank: RankId) -> Result<(), String> {
        match self.ordered.get(&rank) {
            Some(ordered) if *ordered == node => Ok(()),
            Some(ordered) => Err(format!("{rank} starts on node {node}, but was ordered to {ordered}")),
            None => Err(format!("{rank} starts on node {node}, and nobody ordered it")),
        }
    }

    /// Every job is as it was last seen, unless it was long over and may be forgotten.
    ///
    /// # Errors
    /// If one is not.
    pub(crate) fn check_all(&self, now: Time, head: &Head) -> Result<(), String> {
        for (id, job) in &self.jobs {
            match head.record(now, *id) {
                Some(record) if ObservedJob::of(&record) == job.seen => {}
                Some(_) => return Err(format!("job {id} has changed, and nobody was told")),
                None if job.may_be_forgotten(now, self.config.retention) => {}
                None => return Err(format!("job {id} was accepted, and is forgotten")),
            }
        }
        self.check_live(head)?;
        self.check_ledger(head)
    }

    /// The jobs that changed, before and after; from now on the reference knows how they are.
    fn look(
        &mut self,
        it: &HandledEvent<'_>,
        changed: &BTreeSet<JobId>,
    ) -> Result<Vec<JobTransition>, String> {
        let mut steps = Vec::new();
        for id in changed {
            let job = self.jobs.get_mut(id).expect("it is known");
            let after = match it.head.record(it.at, *id) {
                Some(record) => ObservedJob::of(&record),
                None if job.may_be_forgotten(it.at, self.config.retention) => continue,
                None => return Err(format!("job {id} was accepted, and is forgotten")),
            };
            let before = std::mem::replace(&mut job.seen, after.clone());
            job.note(&before, &after);
            match after.state.is_terminal() {
                true => _ = self.live.remove(id),
                false => _ = self.live.insert(*id),
            }
            steps.push(JobTransition { id: *id, before, after });
        }
        self.note_ends(changed);
        Ok(steps)
    }

    fn check_live(&self, head: &Head) -> Result<(), String> {
        let known: BTreeSet<JobId> = head.live_jobs().collect();
        match known.symmetric_difference(&self.live).next() {
            None => Ok(()),
            Some(id) if known.contains(id) => Err(format!("job {id} lives, and should not")),
            Some(id) => Err(format!("job {id} has not ended, and the head no longer says that it lives")),
        }
    }
}

/// A job that watchers hear of.
const fn published(effect: &Effect) -> Option<JobId> {
    match effect {
        Effect::Publish(job, _) => Some(*job),
        Effect::Tell(..) | Effect::Answer(..) | Effect::Plan(_) | Effect::Close(..) => None,
    }
}

//! Bugs planted around the production cores: faulty shells, and faulty state after a recovery.

use cohabit_policy::{Action, Plan, RunPhase, RunningJob};
use cohabit_scheduler_core::{Config, Effect, Event};
use cohabit_types::{
    AttemptId, DeviceId, HostShare, JobEvent, JobEventKind, JobId, NodeId, Order, Outcome, Qos, RankId,
    Report, RunOrder, Share, Span, WorkerKey,
};
use cohabit_worker_core::WorkerEvent;
use serde_json::Value;

use super::World;
use crate::failure::SimFailure;
use crate::planted_bug::PlantedBug;
use crate::scenario::Scenario;
use crate::sim_event::{HeadSimEvent, SimEvent, SimMessage};

/// How long after an order the end of an earlier attempt is reported again.
const INJECTION_DELAY: Span = Span::from_secs(1);

/// What the head was told, which a planted bug does not heed.
pub(super) fn told_config(scenario: &Scenario) -> Config {
    let is_heeded = scenario.plant != Some(PlantedBug::UnaskedSuccession);
    Config { succession: scenario.config.succession && is_heeded, ..scenario.config.clone() }
}

impl World<'_> {
    /// Whether a worker sends this report to the head, as it should.
    pub(super) fn tells(&mut self, node: usize, report: &Report) -> Result<bool, SimFailure> {
        let Report::Ended { rank, .. } = report else { return Ok(true) };
        if self.plant == Some(PlantedBug::KeptPrefetch) {
            return Ok(self.nodes[node].holds(*rank));
        }
        if self.plant != Some(PlantedBug::LostReport) {
            return Ok(true);
        }
        self.worker_event(node, WorkerEvent::Order(Order::Acknowledge(*rank)))?;
        Ok(false)
    }

    /// Adds the planted bug, if any, to an order of the head.
    pub(super) fn inject_worker_bugs(&mut self, effect: &Effect) {
        if let Effect::SendOrder(key, Order::Allot { attempt, host }) = effect {
            self.believe_order(*key, *attempt, *host);
        }
        let Effect::SendOrder(key, Order::Run(order)) = effect else { return };
        match self.plant {
            Some(PlantedBug::DoubledAttempt) => self.double(*key, order),
            Some(PlantedBug::UnfencedReport) => self.relabel(*key, order),
            Some(_) | None => {}
        }
    }

    /// An order as its worker gets it: with the planted bug it waits for nothing.
    pub(super) fn ordered(&self, mut order: Order) -> Order {
        if let Order::Run(run) = &mut order
            && self.plant == Some(PlantedBug::ImpatientWorker)
        {
            run.after = None;
        }
        order
    }

    /// With the planted bug, the head hears at once that what it orders is done.
    fn believe_order(&mut self, key: WorkerKey, attempt: AttemptId, host: HostShare) {
        if self.plant == Some(PlantedBug::GrantBeforeShrink) {
            let done = HeadSimEvent::Relabelled(key, Report::Allotted { attempt, host });
            self.queue.put(self.now, SimEvent::Head(self.head.generation, done));
        }
    }

    /// Sends the same order to another machine, for its own devices.
    fn double(&mut self, key: WorkerKey, order: &RunOrder) {
        let other = self.head.sessions.iter().find(|(other, _)| other.node != key.node);
        let Some((link, node)) = other.and_then(|(other, link)| Some((*link, self.node_index(other.node)?)))
        else {
            return;
        };
        let mut order = order.clone();
        let there = self.nodes[node].machine.shape().devices();
        for run in &mut order.ranks {
            let count = run.devices.len();
            run.devices = there.iter().take(count).map(|device| device.id.clone()).collect::<Vec<DeviceId>>();
        }
        self.send(link, SimMessage::Order(Order::Run(Box::new(order))));
    }

    /// Reports the end of an earlier attempt as if it were the end of the one that is ordered now.
    fn relabel(&mut self, key: WorkerKey, order: &RunOrder) {
        let Some(earlier) = order.attempt.attempt.checked_sub(1).filter(|earlier| *earlier > 0) else {
            return;
        };
        let rank = |attempt: u32| order.attempt.job.attempt(attempt).rank(0);
        let Some(outcome) = self.outcome_of(rank(earlier)) else { return };
        let (rank, at) = (rank(order.attempt.attempt), self.now);
        let report = Report::Ended { rank, outcome, stopped: None, progress: None, at, usage: Vec::new() };
        let event = SimEvent::Head(self.head.generation, HeadSimEvent::Relabelled(key, report));
        self.queue.put(self.now + INJECTION_DELAY, event);
    }

    /// Changes the state of the head that was recovered.
    pub(super) fn inject_head_bugs(&mut self) {
        match self.plant {
            Some(PlantedBug::LeakedSlot) => self.head.edit(|head, _| {
                let nodes = head["nodes"].as_object_mut().into_iter().flatten();
                nodes.for_each(|(_, node)| node["devices"][1]["used"] = Share::WHOLE.0.into());
            }),
            Some(PlantedBug::DoubleCharge) => self.head.edit(|head, _| {
                let used = head["shares"]["used"].as_object_mut().into_iter().flatten();
                used.for_each(|(_, used)| used["held"] = (used["held"].as_u64().unwrap_or(0) + 1_000).into());
            }),
            Some(PlantedBug::ForgottenReservation) => self.head.edit(|head, _| {
                if let Some(reservations) = head.get_mut("reservations").and_then(Value::as_object_mut) {
                    reservations.insert("known".into(), serde_json::Map::new().into());
                }
            }),
            Some(PlantedBug::BelievedIdle) => self.head.edit(|_, parts| {
                let jobs = parts.iter_mut().filter_map(|part| part["jobs"].as_object_mut());
                for job in jobs.flat_map(|jobs| jobs.values_mut()) {
                    if let Some(attempt) = job.pointer_mut("/status/running") {
                        attempt["idle_since"] = 0.into();
                    }
                }
            }),
            Some(PlantedBug::ForgottenJob) => self.head.edit(|_, parts| {
                let forgotten = JobId::new(1).to_string();
                for part in parts {
                    for jobs in ["jobs", "submissions"] {
                        part[jobs].as_object_mut().expect("it is a map").remove(&forgotten);
                    }
                    let eligible = part["eligible"].as_array_mut().expect("it is a set");
                    eligible.retain(|job| *job != forgotten.as_str());
                }
            }),
            Some(_) | None => {}
        }
    }

    /// The events of an impostor's link. With the planted bug, its reports are taken for those of everybody.
    pub(super) fn believe_impostor(&self, events: Vec<Event>) -> Vec<Event> {
        if self.plant != Some(PlantedBug::BelievedImpostor) {
            return events;
        }
        let reports = events
            .into_iter()
            .filter_map(|event| if let Event::Report(_, it) = event { Some(it) } else { None });
        let of_all =
            |report: Report| self.head.sessions.keys().map(move |key| Event::Report(*key, report.clone()));
        reports.flat_map(of_all).collect()
    }

    /// A plan of the policy with the planted bug, if there is one of plans.
    pub(super) fn with_planted_bug(&self, plan: Plan) -> Plan {
        let mut running = self.head.view().running.values().filter(|job| job.phase == RunPhase::Running);
        let victim = match self.plant {
            Some(PlantedBug::UnwillingVictim) => running.find(|job| !job.traits.preemptible),
            Some(PlantedBug::LaneVictim) => {
                running.find(|job| job.traits.preemptible && self.had_waited_too_long(job.id))
            }
            Some(PlantedBug::VictimBelowPart) => return self.with_needless_reclaim(plan),
            Some(PlantedBug::StoppedWork) => return self.with_stopped_work(plan),
            Some(PlantedBug::ForgottenWake) => return Plan { wake: None, ..plan },
            Some(_) | None => None,
        };
        let stop = |job: &RunningJob| Action::Preempt { job: job.id, why: "makes room for job 0".into() };
        Plan { actions: plan.actions.into_iter().chain(victim.map(stop)).collect(), ..plan }
    }

    /// Reclaims all jobs that may be, for any job that waits.
    fn with_needless_reclaim(&self, mut plan: Plan) -> Plan {
        let view = self.head.view();
        let Some(claimant) = view.pending.values().next().filter(|_| view.fair_shares.is_some()) else {
            return plan;
        };
        let why = format!("makes room for job {} of {}: planted", claimant.id, claimant.traits.user);
        let keep_for = view.fair_shares.as_ref().map(|shares| shares.table().keep_for).unwrap_or_default();
        let may_stop = |job: &&RunningJob| {
            let is_old = view.now.since(job.started_at) >= keep_for && view.now >= job.reclaimable_from;
            let is_other = job.traits.user != claimant.traits.user && job.traits.qos != Qos::Low;
            job.traits.preemptible && job.phase == RunPhase::Running && is_old && is_other
        };
        let victims = view.running.values().filter(may_stop);
        plan.actions.extend(victims.map(|job| Action::Reclaim { job: job.id, why: why.clone() }));
        plan
    }

    /// Stops a job as idle that does something, for any job that waits.
    fn with_stopped_work(&self, mut plan: Plan) -> Plan {
        let view = self.head.view();
        let works =
            view.running.values().find(|job| job.phase == RunPhase::Running && job.idle_from.is_none());
        if let Some((job, claimant)) = works.zip(view.pending.values().next()) {
            let why = format!("makes room for job {} of {}: planted", claimant.id, claimant.traits.user);
            plan.actions.push(Action::StopIdle { job: job.id, why });
        }
        plan
    }

    /// Whether the job's last start was one of a job that had waited too long.
    fn had_waited_too_long(&self, job: JobId) -> bool {
        let history = self.head.head().job_history(job);
        let reason = |it: &JobEvent| {
            let JobEventKind::Placed { why, .. } = &it.kind else { return None };
            Some(why.starts_with("waited too long"))
        };
        history.iter().rev().find_map(reason).unwrap_or(false)
    }

    fn node_index(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|it| it.id == node)
    }

    fn outcome_of(&self, rank: RankId) -> Option<Outcome> {
        self.nodes.iter().find_map(|node| node.machine.accounts().outcomes.get(&rank)).cloned()
    }
}

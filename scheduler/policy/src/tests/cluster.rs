//! A tiny cluster that runs a policy through time: jobs arrive, start where the policy says, and end after
//! exactly as many iterations as they really have, each as long as it takes with their placement.
//!
//! Every placement is checked against what is free. A preempted job keeps what it has done and waits again.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{Demand, Estimate, HostShare, JobId, ModelDescription, Placement, Span, Time};

use super::kit;
use crate::{
    Action, AttainedTime, FirstFit, FreeNodes, JobTraits, NodeView, PendingJob, Placer, Plan, Policy,
    RunPhase, RunningJob, View, ViewChange,
};

/// More plans than this at one moment mean that the policy runs in circles.
const TOO_MANY_PLANS: u32 = 1_000;

/// A job, with what only the cluster knows of it.
#[derive(Debug, Clone)]
pub(crate) struct TestJob {
    pub(crate) pending: PendingJob,
    /// Its true number of iterations. Without a graph an iteration takes a second.
    pub(crate) iterations: u64,
}

impl TestJob {
    /// A job with an exact estimate.
    pub(crate) fn new(number: u64, arrives_at: f64, demand: Demand, iterations: u64) -> TestJob {
        let at = Time::EPOCH + Span::from_secs_f64(arrives_at);
        let pending = PendingJob { submitted_at: at, eligible_at: at, ..kit::job(number, demand) };
        TestJob { pending, iterations }.expected(iterations)
    }

    /// Sets the expected number of iterations: what the user states, and the estimate that follows from it.
    pub(crate) fn expected(self, iterations: u64) -> TestJob {
        let runtime = Some(Span::from_secs(iterations));
        let estimate = Estimate { iterations: Some(iterations), runtime, ..Estimate::default() };
        self.with_traits(|traits| {
            traits.iterations = Some(iterations);
            traits.estimate = Some(estimate);
        })
    }

    /// Sets its model.
    pub(crate) fn training(self, model: ModelDescription) -> TestJob {
        self.with_traits(|traits| traits.model = Some(model))
    }

    fn with_traits(mut self, change: impl FnOnce(&mut JobTraits)) -> TestJob {
        change(Arc::make_mut(&mut self.pending.traits));
        self
    }
}

/// A job that ended.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) job: JobId,
    pub(crate) arrived_at: Time,
    /// When its first attempt started.
    pub(crate) started_at: Time,
    pub(crate) ended_at: Time,
    /// The placement of its last attempt.
    pub(crate) placement: Placement,
    /// How much slower an iteration was there than at the best placement, as a factor.
    pub(crate) slowdown: f64,
    pub(crate) attempts: u32,
    /// The policy's reason for its last start.
    pub(crate) why: String,
}

/// Runs jobs that are not sensitive to their placement. Jobs that never start are missing in the answer.
pub(crate) fn run(policy: &mut dyn Policy, nodes: Vec<NodeView>, jobs: Vec<TestJob>) -> Vec<Ran> {
    TestCluster::new(nodes, jobs, Box::new(FirstFit)).run(policy)
}

/// The cluster.
pub(crate) struct TestCluster {
    view: View,
    /// Future events by time; at one time, ends come before arrivals.
    events: BTreeMap<(Time, Event), ()>,
    /// Knows how much slower a placement is than the best.
    truth: Box<dyn Placer>,
    jobs: BTreeMap<JobId, TestJob>,
    attempts: BTreeMap<JobId, Attempt>,
    /// What the policy has not been told yet.
    changes: Vec<ViewChange>,
    ended: Vec<Ran>,
    /// How long a preempted job takes to release its devices.
    pub(crate) stopping_takes: Span,
    /// What running jobs say of their ends whenever something happens, if they say anything.
    pub(crate) report: Option<Report>,
    /// How often the policy planned.
    pub(crate) plans: u64,
}

/// What a running job says of its end at a time.
pub(crate) type Report = fn(&RunningJob, Time) -> Option<Time>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ended(JobId, u32),
    Stopped(JobId, u32),
    Arrived(JobId),
}

/// The state of a job.
#[derive(Debug, Clone)]
struct Attempt {
    number: u32,
    first_started_at: Time,
    started_at: Time,
    /// What was left of it when this attempt started, as a fraction of the whole.
    left: f64,
    slowdown: f64,
    why: String,
}

impl TestCluster {
    pub(crate) fn new(nodes: Vec<NodeView>, jobs: Vec<TestJob>, truth: Box<dyn Placer>) -> TestCluster {
        let arrival = |job: &TestJob| ((job.pending.eligible_at, Event::Arrived(job.pending.id)), ());
        let view = View { nodes, ..View::default() };
        TestCluster {
            changes: view.as_changes(),
            view,
            events: jobs.iter().map(arrival).collect(),
            truth,
            jobs: jobs.into_iter().map(|job| (job.pending.id, job)).collect(),
            attempts: BTreeMap::new(),
            ended: Vec::new(),
            stopping_takes: Span::ZERO,
            report: None,
            plans: 0,
        }
    }

    /// Runs until nothing is left to happen; returns the jobs in the order in which they ended.
    pub(crate) fn run(&mut self, policy: &mut dyn Policy) -> Vec<Ran> {
        self.truth.prepare(&self.view);
        let mut wake = None;
        while let Some(now) = self.next_moment(wake) {
            self.view.now = now;
            wake = self.pass(policy);
            assert!(wake.is_none_or(|at| at > now), "a policy that wakes at once never ends");
        }
        std::mem::take(&mut self.ended)
    }

    fn next_moment(&self, wake: Option<Time>) -> Option<Time> {
        let event = self.events.first_key_value().map(|((at, _), ())| *at);
        event.into_iter().chain(wake).min()
    }

    /// Handles everything that happens at one moment; returns when the policy wants to be asked again.
    fn pass(&mut self, policy: &mut dyn Policy) -> Option<Time> {
        for _ in 0..TOO_MANY_PLANS {
            while let Some(entry) = self.events.first_entry().filter(|it| it.key().0 == self.view.now) {
                let ((_, event), ()) = entry.remove_entry();
                self.happen(event);
            }
            self.report_ends();
            policy.learn(&self.view, &std::mem::take(&mut self.changes));
            let Plan { actions, wake } = policy.plan(&self.view);
            self.plans += 1;
            actions.into_iter().for_each(|action| self.act(action));
            policy.learn(&self.view, &std::mem::take(&mut self.changes));
            if self.next_moment(None) != Some(self.view.now) {
                return wake;
            }
        }
        panic!("the policy runs in circles at {:?}", self.view.now);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrived(job) => self.change(ViewChange::Pending(self.jobs[&job].pending.clone())),
            Event::Ended(job, attempt) if self.attempts[&job].number == attempt => self.end(job),
            Event::Stopped(job, attempt) if self.attempts[&job].number == attempt => self.requeue(job),
            Event::Ended(..) | Event::Stopped(..) => {}
        }
    }

    fn report_ends(&mut self) {
        let Some(report) = self.report else { return };
        let running = self.view.running.values().filter(|job| job.phase == RunPhase::Running);
        for job in running.cloned().collect::<Vec<_>>() {
            let reported_end = report(&job, self.view.now);
            self.change(ViewChange::Running(RunningJob { reported_end, ends_at: reported_end, ..job }));
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Place { job, placement, why, .. } => self.start(job, placement, why),
            Action::Preempt { job, .. } | Action::Reclaim { job, .. } | Action::StopIdle { job, .. } => {
                self.stop(job)
            }
            Action::Allot { job, host, .. } => self.allot(job, host),
        }
    }

    fn start(&mut self, id: JobId, placement: Placement, why: String) {
        let job = self.view.pending.get(&id).expect("only a pending job is placed").clone();
        let free = FreeNodes::new(&self.view.nodes);
        kit::fits(&free, &job.demand, &placement).expect("a placement fits what is free");
        let profile = self.truth.profile(&job.demand, &job.traits);
        let slowdown = self.truth.slowdown(&profile, &placement);
        let best = profile.bounds.map_or(1.0, |bounds| bounds.fastest);
        let now = self.view.now;
        let before = self.attempts.remove(&id);
        let attempt = Attempt {
            number: before.as_ref().map_or(1, |it| it.number + 1),
            first_started_at: before.as_ref().map_or(now, |it| it.first_started_at),
            started_at: now,
            left: before.as_ref().map_or(1.0, |it| it.left),
            slowdown,
            why,
        };
        let seconds = self.jobs[&id].iterations as f64 * best * slowdown * attempt.left;
        self.events.insert((now + Span::from_secs_f64(seconds), Event::Ended(id, attempt.number)), ());
        self.attempts.insert(id, attempt);
        self.book(&placement, |free| free.take_as_resident(id, &job.demand, &placement));
        self.change(ViewChange::Running(job.placed(placement, now)));
    }

    /// Workers answer at once.
    fn allot(&mut self, id: JobId, host: HostShare) {
        let mut running = self.view.running.get(&id).expect("only a running job is changed").clone();
        let demand = running.demand;
        assert!(demand.is_fungible() && running.phase == RunPhase::Running && running.allotting.is_none());
        assert!(demand.least_host().is_within(host) && host.is_within(demand.most_host()), "{host}");
        let before = running.placement.parts[0].host_share(&demand);
        let node = self.view.nodes.iter().find(|node| node.id == running.placement.parts[0].node).unwrap();
        assert!(host.saturating_sub(before).is_within(node.host_free()), "{host} is more than is free");
        running.allotted_at = self.view.now;
        let placement = running.placement.clone();
        self.book(&placement, |free| free.change_host_share(placement.parts[0].node, before, host));
        running.placement.parts[0].host = Some(host);
        self.change(ViewChange::Running(running));
    }

    fn stop(&mut self, id: JobId) {
        let running = self.view.running.get(&id).expect("only a running job is preempted").clone();
        assert_eq!(running.phase, RunPhase::Running, "a job is stopped once");
        let (job, now) = (&self.jobs[&id], self.view.now);
        let profile = self.truth.profile(&running.demand, &running.traits);
        let best = profile.bounds.map_or(1.0, |bounds| bounds.fastest);
        let attempt = self.attempts.get_mut(&id).expect("it runs");
        let whole = job.iterations as f64 * best * attempt.slowdown;
        let done = now.since(attempt.started_at).as_secs_f64() / whole.max(f64::MIN_POSITIVE);
        attempt.left = (attempt.left - done).max(0.0);
        let ended = Event::Ended(id, attempt.number);
        let stopped = (now + self.stopping_takes, Event::Stopped(id, attempt.number));
        self.events.retain(|(_, event), ()| *event != ended);
        self.events.insert(stopped, ());
        self.change(ViewChange::Running(RunningJob { phase: RunPhase::Stopping, ..running }));
    }

    fn requeue(&mut self, id: JobId) {
        let running = self.free(id);
        let held = self.view.now.since(running.started_at);
        let AttainedTime { held: before, worked } = running.attained;
        let attained = AttainedTime { held: before + held, worked: worked + held };
        let pending = PendingJob { eligible_at: self.view.now, attained, ..self.jobs[&id].pending.clone() };
        self.change(ViewChange::Pending(pending));
    }

    fn end(&mut self, id: JobId) {
        let running = self.free(id);
        self.change(ViewChange::Gone(id));
        let attempt = self.attempts[&id].clone();
        self.ended.push(Ran {
            job: id,
            arrived_at: self.jobs[&id].pending.eligible_at,
            started_at: attempt.first_started_at,
            ended_at: self.view.now,
            placement: running.placement,
            slowdown: attempt.slowdown,
            attempts: attempt.number,
            why: attempt.why,
        });
    }

    /// Releases what a job holds.
    fn free(&mut self, id: JobId) -> RunningJob {
        let running = self.view.running[&id].clone();
        self.book(&running.placement, |free| free.remove_resident(id, &running.demand, &running.placement));
        running
    }

    fn book(&mut self, placement: &Placement, change: impl FnOnce(&mut FreeNodes<'_>)) {
        let mut free = FreeNodes::new(&self.view.nodes);
        change(&mut free);
        let touched = |node: &&NodeView| placement.parts.iter().any(|part| part.node == node.id);
        let nodes: Vec<NodeView> = free.nodes().filter(touched).cloned().collect();
        nodes.into_iter().for_each(|node| self.change(ViewChange::Node(node)));
    }

    fn change(&mut self, change: ViewChange) {
        self.view.apply(std::slice::from_ref(&change));
        self.changes.push(change);
    }
}

//! The test kit: a head with a policy, and the effects since the last look at them.

use cohabit_policy::{CompletedRun, JobFeatures, PastRuns, Policy, QueueForecast, View, parse_policy};
use cohabit_types::{
    Array, Bytes, ChangeResult, ClientRequestId, ColocationSlowdown, Demand, Device, DeviceId, DeviceKind,
    FeedEvent, GpuRequest, HeldRank, Incarnation, IndexRange, Inventory, Isolation, JobChange, JobId,
    JobRecord, JobSpec, JobState, LinkBandwidths, NodeId, Notice, Order, Outcome, Principal, RankId, Reply,
    Report, Request, Role, RunOrder, Share, SharingLimits, Span, StopReason, Submit, Time, WorkerKey,
};
use uuid::Uuid;

use crate::accounting_entry::AccountingEntry;
use crate::{Config, Effect, Event, Head, HeadReader, PolicyForecasts, ViewTracker};

pub(crate) struct TestHead {
    pub(crate) head: Head,
    pub(crate) now: Time,
    pub(crate) events: Vec<(Time, Event)>,
    policy: Box<dyn Policy>,
    view: View,
    pub(crate) tracker: ViewTracker,
    pub(crate) forecasts: PolicyForecasts,
    /// Completed runs.
    pub(crate) past_runs: PastRuns,
    /// What the policy says about jobs on the same devices.
    slowdowns: Vec<ColocationSlowdown>,
    effects: Vec<Effect>,
    /// What was added to the feed.
    feed: Vec<FeedEvent>,
    /// What counts in reports.
    pub(crate) accounts: Vec<AccountingEntry>,
}

pub(crate) fn ada() -> Principal {
    Principal::new("ada", Role::User)
}

pub(crate) fn root() -> Principal {
    Principal::new("root", Role::Admin)
}

pub(crate) fn node(number: u64) -> NodeId {
    NodeId(Uuid::from_u128(number.into()))
}

pub(crate) fn key(number: u64, incarnation: u64) -> WorkerKey {
    WorkerKey { node: node(number), incarnation: Incarnation(incarnation) }
}

pub(crate) fn job(number: u64) -> JobId {
    JobId::new(number)
}

pub(crate) fn rank(number: u64, attempt: u32) -> RankId {
    job(number).attempt(attempt).rank(0)
}

pub(crate) fn command() -> JobSpec {
    JobSpec::command(vec!["train".into()], "/".into())
}

pub(crate) fn gpus(count: u32) -> JobSpec {
    JobSpec { demand: Demand { gpus: GpuRequest::Whole(count), ..Demand::default() }, ..command() }
}

/// A share of a device that may be shared: it says how much memory it needs.
pub(crate) fn part(thousandths: u32) -> JobSpec {
    let (gpus, gpu_memory) = (GpuRequest::Part(Share(thousandths)), Some(Bytes(1 << 30)));
    JobSpec { demand: Demand { gpus, gpu_memory, ..Demand::default() }, ..command() }
}

pub(crate) fn array(first: u32, last: u32, at_once: Option<u32>) -> JobSpec {
    JobSpec { array: Some(Array { ranges: vec![IndexRange { first, last, step: 1 }], at_once }), ..command() }
}

pub(crate) fn inventory(number: u64, devices: u32, held_ranks: Vec<HeldRank>) -> Inventory {
    let device = |n| {
        Device::new(DeviceId(format!("gpu-{n}").into()), DeviceKind::Fake, "test GPU", Some(Bytes(80 << 30)))
    };
    Inventory {
        name: format!("node{number}"),
        address: format!("10.0.0.{number}"),
        cpus: 8,
        memory: Bytes(64 << 30),
        devices: (0..devices).map(device).collect(),
        build: "test".into(),
        links: LinkBandwidths::default(),
        sharing: SharingLimits::default(),
        max_jobs: None,
        rendezvous_ports: vec![29_601, 29_602, 29_603],
        isolation: Isolation::default(),
        fetches_code: true,
        prefetches: false,
        application_ports: true,
        changes_host_shares: true,
        orphan_grace: Span::ZERO,
        held_ranks,
    }
}

impl TestHead {
    /// A configured head without nodes.
    pub(crate) fn new() -> TestHead {
        let mut test = TestHead {
            head: Head::new(),
            now: Time::from_micros(1_000_000),
            events: Vec::new(),
            policy: parse_policy("fifo").unwrap(),
            view: View::default(),
            tracker: ViewTracker::default(),
            forecasts: PolicyForecasts::default(),
            past_runs: PastRuns::default(),
            slowdowns: Vec::new(),
            effects: Vec::new(),
            feed: Vec::new(),
            accounts: Vec::new(),
        };
        let config = Config { lost_after: Span::from_secs(60), node_failures: 2, ..Config::default() };
        test.event(Event::HeadStarted(config));
        test
    }

    /// A configured head with one node that has this many devices.
    pub(crate) fn with_devices(devices: u32) -> TestHead {
        let mut test = TestHead::new();
        test.join(1, devices);
        test.effects.clear();
        test
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.events.push((self.now, event.clone()));
        let changed = self.head.handle(self.now, event, &mut self.effects);
        self.tracker.note(changed);
        let added = self.effects.extract_if(.., |effect| matches!(effect, Effect::AddToFeed(_)));
        let event = |effect| if let Effect::AddToFeed(event) = effect { Some(*event) } else { None };
        self.feed.extend(added.filter_map(event));
        let accounted = self.effects.extract_if(.., |effect| matches!(effect, Effect::Account(_)));
        let entry = |effect| if let Effect::Account(entry) = effect { Some(*entry) } else { None };
        self.accounts.extend(accounted.filter_map(entry));
        self.head.check().unwrap();
    }

    pub(crate) fn join(&mut self, number: u64, devices: u32) {
        self.event(Event::Joined(key(number, 1), inventory(number, devices, vec![])));
        self.planned();
    }

    pub(crate) fn rejoin(&mut self, number: u64, incarnation: u64, held_ranks: Vec<HeldRank>) {
        self.event(Event::Joined(key(number, incarnation), inventory(number, 1, held_ranks)));
        self.planned();
    }

    pub(crate) fn lose(&mut self, number: u64, incarnation: u64) {
        self.event(Event::Lost(key(number, incarnation), "cut".into()));
        self.planned();
    }

    pub(crate) fn request(&mut self, by: Principal, request: Request) -> Reply {
        self.event(Event::Client(ClientRequestId(7), by, request));
        let answer = self.effects.iter().position(|it| matches!(it, Effect::Answer(..))).unwrap();
        let Effect::Answer(_, reply) = self.effects.remove(answer) else { unreachable!() };
        self.planned();
        reply
    }

    pub(crate) fn submit(&mut self, spec: JobSpec) -> JobId {
        match self.try_submit(spec) {
            Reply::Accepted { job, .. } => job,
            other => panic!("not accepted: {other:?}"),
        }
    }

    pub(crate) fn try_submit(&mut self, spec: JobSpec) -> Reply {
        self.request(ada(), Request::Submit(Box::new(Submit { spec, idempotency_key: None, estimate: None })))
    }

    pub(crate) fn change(&mut self, change: JobChange, job: JobId) -> ChangeResult {
        match self.request(ada(), Request::Change(change, vec![job])) {
            Reply::Changed(mut verdicts) => verdicts.remove(0).1,
            other => panic!("not changed: {other:?}"),
        }
    }

    pub(crate) fn started(&mut self, rank: RankId) {
        let at = self.now;
        self.event(Event::Report(key(1, 1), Report::Started { rank, at }));
    }

    pub(crate) fn ended(&mut self, rank: RankId, outcome: Outcome, stopped: Option<StopReason>) {
        self.ended_on(key(1, 1), rank, outcome, stopped);
    }

    pub(crate) fn ended_on(
        &mut self,
        key: WorkerKey,
        rank: RankId,
        outcome: Outcome,
        stopped: Option<StopReason>,
    ) {
        let at = self.now;
        self.event(Event::Report(
            key,
            Report::Ended { rank, outcome, stopped, progress: None, at, usage: Vec::new() },
        ));
        self.planned();
    }

    /// Shows the policy what changed.
    fn look(&mut self) {
        let changes = self.tracker.changes(&self.head, self.now);
        self.view.now = self.now;
        self.view.apply(&changes);
        self.policy.learn(&self.view, &changes);
    }

    /// Answers every open request with the policy's plan.
    pub(crate) fn planned(&mut self) {
        while let Some(ticket) = self.head.open_plan_request {
            self.look();
            let plan = self.policy.plan(&self.view);
            self.event(Event::Planned(ticket, plan));
        }
        self.look();
        let forecasts = QueueForecast::new(&self.view, self.policy.explain_pending(&self.view));
        self.forecasts = PolicyForecasts::new(forecasts, self.slowdowns.clone());
    }

    /// From now on this policy plans.
    pub(crate) fn follow(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
        let changes = self.view.as_changes();
        self.policy.learn(&self.view, &changes);
    }

    /// From now on the policy says this about jobs on the same devices.
    pub(crate) fn predict(&mut self, slowdowns: Vec<ColocationSlowdown>) {
        self.slowdowns = slowdowns;
        self.planned();
    }

    /// Lets time pass, with an alarm at every deadline on the way.
    pub(crate) fn after(&mut self, span: Span) {
        let until = self.now + span;
        while let Some((at, _)) = self.head.deadline().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            self.event(Event::Alarm);
            self.planned();
        }
        self.now = until;
    }

    /// Orders given since the last look.
    pub(crate) fn orders(&mut self) -> Vec<(WorkerKey, Order)> {
        let effects = std::mem::take(&mut self.effects);
        effects
            .into_iter()
            .filter_map(|it| if let Effect::SendOrder(key, order) = it { Some((key, order)) } else { None })
            .collect()
    }

    /// Attempts ordered to run since the last look.
    pub(crate) fn runs(&mut self) -> Vec<RunOrder> {
        let run = |(_, order)| if let Order::Run(run) = order { Some(*run) } else { None };
        self.orders().into_iter().filter_map(run).collect()
    }

    /// Jobs whose end was published since the last look.
    pub(crate) fn ends(&mut self) -> Vec<JobRecord> {
        let effects = std::mem::take(&mut self.effects);
        let end = |it| match it {
            Effect::Publish(_, Notice::Ended(record)) => Some(*record),
            _ => None,
        };
        effects.into_iter().filter_map(end).collect()
    }

    /// What was added to the feed since the last call.
    pub(crate) fn feed(&mut self) -> Vec<FeedEvent> {
        std::mem::take(&mut self.feed)
    }

    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The head's answers now, with the latest forecasts.
    pub(crate) fn reader(&self) -> HeadReader<'_> {
        self.head.at(self.now).with_forecasts(&self.forecasts).with_past_runs(&self.past_runs)
    }

    pub(crate) fn record(&self, job: JobId) -> JobRecord {
        self.reader().record(job).unwrap()
    }

    pub(crate) fn state(&self, job: JobId) -> JobState {
        self.record(job).state
    }
}

/// Five completed runs of jobs with this specification, by ada, of so many seconds each.
pub(crate) fn runs_like(spec: &JobSpec, secs: u64) -> PastRuns {
    let mut past_runs = PastRuns::default();
    let features = JobFeatures::of("ada", spec, Time::EPOCH);
    let runtime = Span::from_secs(secs);
    let run = CompletedRun { features, ended_at: Time::EPOCH, runtime, iterations: None };
    past_runs.learn(&vec![run; 5]);
    past_runs
}

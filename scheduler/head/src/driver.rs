//! The driver: the one task that owns the head's state machine.
//!
//! ```text
//! requests, reports, links, plans, alarms ──> batch ──> journal ──> Head::handle ──> effects ──> everywhere
//! ```
//!
//! What comes while one batch becomes durable is the next batch, so a busy head commits for many at once, and
//! answers questions meanwhile. Nothing is answered, ordered or published before its cause is durable. The
//! driver decides nothing about jobs.

mod alarm;
mod batch;
mod describe;
mod durability;
mod effects;
mod learning;
mod message;
mod planning;
mod snapshots;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context, ReplyTo, TaskHandle};
use cohabit_policy::interference::GpuKind;
use cohabit_scheduler_core::{Event, Head};
use cohabit_types::{
    ClientRequestId, PlanRequestId, Principal, Reply, Report, Request, Span, Submit, Time, WorkerKey,
};

use crate::clock::Clock;
use crate::estimates::Estimates;
use crate::footprints::GpuMemoryTracker;
use crate::interference::TrainerHandle;
use crate::journal::{Commit, JournalEntry, Write};
use crate::planner::Planner;
use crate::watchers::Watchers;
use batch::{Batch, PendingEvent};
use describe::LogLine;
use durability::Durability;
use learning::TrainingQueue;
use planning::Outlook;

pub(crate) use learning::InterferenceAwareness;
pub(crate) use message::{Message, Question, SessionHandle, WorkerLookup, WorkerRoute, WorkerSessionMessage};
pub(crate) use snapshots::Snapshots;

/// How many messages may wait for the driver.
pub(crate) const CAPACITY: usize = 1_024;
/// How often the history is pruned.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3_600);

/// What the driver starts with.
pub(crate) struct DriverParts {
    pub(crate) head: Head,
    pub(crate) clock: Clock,
    pub(crate) config: cohabit_scheduler_core::Config,
    pub(crate) journal: Address<Commit>,
    pub(crate) planner: Planner,
    /// Whether the planner's policy goes by what the learner says.
    pub(crate) policy_awareness: InterferenceAwareness,
    pub(crate) learner: TrainerHandle,
    /// How long the pause between two lessons is.
    pub(crate) learn_every: Duration,
    pub(crate) estimates: Estimates,
    pub(crate) memory_tracker: GpuMemoryTracker,
    pub(crate) watchers: Watchers,
    pub(crate) snapshots: Snapshots,
    /// How long the history keeps jobs.
    pub(crate) history_retention: Span,
}

/// Owns the head.
pub(crate) struct Driver {
    parts: DriverParts,
    /// The links of workers.
    sessions: BTreeMap<WorkerKey, SessionHandle>,
    /// Requests that wait for their reply.
    clients: BTreeMap<ClientRequestId, ReplyTo<Reply>>,
    last_client: u64,
    batch: Batch,
    durability: Durability,
    /// The latest plan that the head wants of the policy, still to be asked for.
    wanted_plan: Option<PlanRequestId>,
    outlook: Outlook,
    training_queue: TrainingQueue,
    /// Writes for the history, still to be told to the journal.
    history: Vec<Write>,
    alarm: Option<(Time, TaskHandle)>,
}

impl Driver {
    pub(crate) fn new(parts: DriverParts) -> Driver {
        Driver {
            parts,
            sessions: BTreeMap::new(),
            clients: BTreeMap::new(),
            last_client: 0,
            batch: Batch::default(),
            durability: Durability::default(),
            wanted_plan: None,
            outlook: Outlook::default(),
            training_queue: TrainingQueue::default(),
            history: Vec::new(),
            alarm: None,
        }
    }

    async fn take(&mut self, message: Message, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        match message {
            Message::Request { by, request, reply_to } => self.request(by, request, reply_to),
            Message::Question(question) => self.question(question, context),
            Message::DryRun { by, spec, reply_to } => self.dry_run(&by, *spec, reply_to, context),
            Message::Find(whose, reply_to) => reply_to.send(self.find(&whose)),
            Message::Joined { key, inventory, session, handled } => {
                self.sessions.insert(key, session);
                self.queue(Event::Joined(key, inventory), Some(handled));
            }
            Message::Lost(key, why) => {
                self.sessions.remove(&key);
                self.queue(Event::Lost(key, why), None);
            }
            Message::Reports(key, reports, handled) => self.reports(key, reports, handled),
            Message::Planned(planned) => self.planned(planned),
            Message::Alarm(set_for) => self.alarm_fired(set_for),
            Message::Outlook(forecasts) => self.forecasts_arrived(forecasts),
            Message::Considered(considered) => self.considered(*considered),
            Message::Models { by, choice, reply_to } => self.models(&by, choice, reply_to, context),
            Message::TrainingUpdate(training_update) => self.training_update(training_update, context),
            Message::TrainingPauseEnded => self.training_pause_ended(),
            Message::Prune => self.prune(),
            Message::Flush => {}
            Message::Committed => self.committed(context).await?,
            Message::Retry => self.retry(context).await?,
        }
        Ok(())
    }

    fn request(&mut self, by: Principal, mut request: Request, reply_to: ReplyTo<Reply>) {
        if let Some(refusal) = self.durability.refusal() {
            return reply_to.send(Reply::Refused(refusal));
        }
        if let Request::Submit(submit) = &mut request {
            self.expect(&by.user, submit);
        }
        self.last_client += 1;
        let client = ClientRequestId(self.last_client);
        self.clients.insert(client, reply_to);
        self.queue(Event::Client(client, by, request), None);
    }

    /// Notes what is expected of a job, where there is ground for it.
    fn expect(&mut self, user: &str, submit: &mut Submit) {
        self.parts.estimates.fill(user, submit, self.parts.clock.now());
        let gpus: Vec<GpuKind> = self.parts.head.gpu_models().into_iter().map(GpuKind::named).collect();
        self.parts.memory_tracker.fill(user, submit, &gpus);
    }

    fn answer(&mut self, question: Question) {
        let now = self.parts.clock.now();
        let head = &self.parts.head;
        match question {
            Question::Resolve(by, references, reply_to) => reply_to.send(head.resolve(&by, &references)),
            Question::List(filter, reply_to) => reply_to.send(head.list(now, &filter)),
            Question::Show(jobs, reply_to) => reply_to.send(head.show(now, &jobs)),
            Question::Explain(job, reply_to) => reply_to.send(head.explain(now, job)),
            Question::Nodes(reply_to) => reply_to.send(head.node_records()),
            Question::ChangedSince(known, reply_to) => reply_to.send(head.changed_since(now, &known)),
            Question::Known(jobs, reply_to) => {
                reply_to.send(jobs.into_iter().filter(|job| head.revision(*job).is_some()).collect());
            }
        }
    }

    /// The session of the worker that holds, or held, something.
    fn find(&self, whose: &WorkerLookup) -> Option<WorkerRoute> {
        let head = &self.parts.head;
        let (node, link) = match whose {
            WorkerLookup::Rank(rank) => head.worker_of(*rank)?,
            WorkerLookup::Node(name) => (name.clone(), head.link_of(head.node_named(name)?)),
        };
        let session = link.and_then(|key| self.sessions.get(&key)).map(|session| session.orders.clone());
        Some(WorkerRoute { node, session })
    }

    fn reports(&mut self, key: WorkerKey, reports: Vec<Report>, handled: ReplyTo<()>) {
        let mut events = Vec::with_capacity(reports.len());
        for report in reports {
            // Of these the head only keeps the history.
            if let Report::Stretches(stretches) = report {
                self.record_samples(&stretches);
                self.history.push(Write::Stretches(stretches));
                continue;
            }
            if let Report::Telemetry(telemetry) = &report {
                self.observe_telemetry(key.node, telemetry);
            }
            events.push(Event::Report(key, report));
        }
        let Some(last) = events.pop() else { return handled.send(()) };
        events.into_iter().for_each(|event| self.queue(event, None));
        self.queue(last, Some(handled));
    }

    /// A leap of the clock is an event of its own, ahead of the first that comes after it.
    fn queue(&mut self, event: Event, handled: Option<ReplyTo<()>>) {
        let at = self.parts.clock.now();
        if let Some(forward) = self.parts.clock.take_leap() {
            tracing::info!(%forward, "nobody's patience counts this time: the head was gone, or its clock was set");
            self.disarm();
            self.push(JournalEntry { at, event: Event::ClockSet(forward) }, None);
        }
        self.push(JournalEntry { at, event }, handled);
    }

    fn push(&mut self, entry: JournalEntry, handled: Option<ReplyTo<()>>) {
        tracing::debug!(at = entry.at.as_micros(), "event: {}", LogLine(&entry.event));
        self.batch.push(PendingEvent { entry: Arc::new(entry), handled });
    }

    /// Lets events happen that are durable, and does what is to be done about them.
    async fn apply_durable_events(&mut self, events: Vec<PendingEvent>) -> Result<(), ActorFailure> {
        let journaled = events.iter().filter(|it| durability::is_journaled(&it.entry.event));
        if let Some(last) = events.last() {
            self.parts.snapshots.count(journaled.count() as u64, last.entry.at);
        }
        for PendingEvent { entry, handled } in events {
            self.handle(Arc::unwrap_or_clone(entry));
            if let Some(handled) = handled {
                handled.send(());
            }
        }
        self.flush_history().await?;
        // What waits for the next commit is younger than a snapshot of now.
        self.parts.snapshots.take(&self.parts.head, &self.parts.journal);
        Ok(())
    }

    fn handle(&mut self, entry: JournalEntry) {
        let mut effects = Vec::new();
        self.parts.head.handle(entry.at, entry.event, &mut effects);
        for effect in effects {
            tracing::debug!("effect: {}", LogLine(&effect));
            self.perform(effect);
        }
    }

    /// Nobody waits for these writes: what a crash loses of them is written again at the next start.
    async fn flush_history(&mut self) -> Result<(), ActorFailure> {
        let writes = std::mem::take(&mut self.history);
        if !writes.is_empty() {
            self.parts.journal.tell(Commit { writes, durable: None }).await?;
        }
        Ok(())
    }

    /// Goes with the next batch: a head to which nothing happens has nothing to prune.
    fn prune(&mut self) {
        let kept_since = self.parts.clock.now() - self.parts.history_retention;
        self.history.push(Write::Prune(kept_since));
    }
}

impl Actor for Driver {
    type Message = Message;

    async fn started(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        self.queue(Event::Configured(self.parts.config.clone()), None);
        if self.parts.policy_awareness == InterferenceAwareness::Aware {
            self.queue(Event::Learned, None);
        }
        self.prune();
        self.finish().await?;
        self.plan(context);
        self.arm(context);
        context.send_every(PRUNE_INTERVAL, || Message::Prune);
        Ok(())
    }

    async fn handle(&mut self, message: Message, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        let end = batch::end_of(&message);
        self.take(message, context).await?;
        self.advance(end, context).await?;
        self.plan(context);
        self.start_training(context);
        if self.batch.is_empty() && self.durability.is_idle() {
            self.arm(context);
        }
        Ok(())
    }

    /// What had come before the stop still happens.
    async fn stopped(&mut self) {
        if let Err(failure) = self.finish().await {
            tracing::error!(%failure, "the last events could not be written");
            return;
        }
        self.parts.snapshots.take_last(&self.parts.head, &self.parts.journal).await;
    }
}

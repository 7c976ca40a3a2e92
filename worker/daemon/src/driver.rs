//! The driver: hands events to the worker core one after the other and carries out its effects in order.
//!
//! It never waits for a rank or for the link: both have queues, and a link that is too slow for its reports
//! is dropped; everything that matters is reported again over the next one. The only work it waits for is
//! writing down why a rank was stopped, which must be on disk before the head hears of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, ChildSpec, Context, TaskHandle, TryTellError, blocking};
use cohabit_host::cgroup::ChangedShare;
use cohabit_host::clock;
use cohabit_host::messages::ExecutorCommand;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_net::WorkerReports;
use cohabit_types::{
    AttemptId, CheckpointResult, HostShare, Incarnation, Order, RankId, Report, StartFailure, StopReason,
    Time,
};
use cohabit_worker_core::{
    FetchedCheckpoints, LEASE_TERM, Lease, RankStart, Worker, WorkerEffect, WorkerEvent,
};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;

use crate::activity::{READ_INTERVAL, processor_times};
use crate::checkpoints::Carrier;
use crate::code::{Abandoned, CopyOrder, CopySteps};
use crate::gpu::{GpuManagers, MpsService, ProcessOwners};
use crate::messages::{DriverMessage, InventorySnapshot, LinkBegin};
use crate::rank::{RankActor, RankMessage, RankOrigin};
use crate::rank_context::RankContext;
use crate::recovery::{self, LeftRank};

/// Commands that may be queued for a rank's executor; the core sends only a few for each rank.
const COMMANDS: usize = 64;

/// The actor that owns the worker core.
pub(crate) struct WorkerDriver {
    worker: Worker,
    rank_context: RankContext,
    /// What earlier daemons left, until it is recovered.
    left: Vec<LeftRank>,
    ranks: BTreeMap<RankId, Address<RankMessage>>,
    gpus: GpuManagers,
    /// Copies of code that are being made.
    fetches: BTreeMap<AttemptId, Abandoned>,
    copy_steps: CopySteps,
    /// Checkpoints that are on their way here.
    carriers: BTreeMap<AttemptId, Abandoned>,
    link: Option<CurrentLink>,
    /// The latest time that the core was given.
    now: Time,
    alarm: Option<(Time, TaskHandle)>,
    /// The latest reading of processor times.
    reading: Option<JoinHandle<()>>,
}

/// The link that the core knows.
struct CurrentLink {
    incarnation: Incarnation,
    /// `None` when it is being dropped.
    reports: Option<mpsc::Sender<Report>>,
    /// The head, for questions.
    head: WorkerReports,
    /// The last time at which the head could surely be reached.
    reached_at: Time,
}

impl WorkerDriver {
    pub(crate) fn new(worker: Worker, rank_context: RankContext, left: Vec<LeftRank>) -> WorkerDriver {
        let (ranks, gpus, fetches) = (BTreeMap::new(), GpuManagers::default(), BTreeMap::new());
        WorkerDriver {
            worker,
            rank_context,
            left,
            ranks,
            gpus,
            fetches,
            copy_steps: CopySteps::default(),
            carriers: BTreeMap::new(),
            link: None,
            now: Time::EPOCH,
            alarm: None,
            reading: None,
        }
    }
}

impl Actor for WorkerDriver {
    type Message = DriverMessage;

    /// Recovers the ranks of earlier daemons before anything else.
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        let left = std::mem::take(&mut self.left);
        // Before the first scan of the GPUs, which would take the ranks' processes for foreign ones.
        let owners = ProcessOwners::new(self.rank_context.cgroups(), self.rank_context.gpus.all());
        left.iter().filter_map(LeftRank::root).for_each(|(rank, it)| owners.rank_started(*rank, it));
        let library = self.rank_context.nvml_library.clone();
        let RankContext { gpus, isolation, .. } = &self.rank_context;
        self.gpus = GpuManagers::spawn(context, gpus, isolation, owners, library);
        let mut code_owners = BTreeSet::new();
        for recovered in recovery::recover(left, &self.rank_context.gpus).await {
            let start = &recovered.found.start;
            match recovered.executor {
                Some(executor) => {
                    let origin = RankOrigin::Found(executor);
                    code_owners.insert(start.code_owner());
                    self.hold(context, start.rank, self.gpus.mps_of(start), origin);
                }
                None => self.gpus.owners.rank_ended(start.rank),
            }
            self.handle_event(context, WorkerEvent::Found(Box::new(recovered.found))).await;
        }
        self.gpus.settle();
        let copies = Arc::clone(&self.rank_context.code);
        self.copy_steps.begin_removal(async move { copies.release_all_but(code_owners).await });
        context.send_every(Duration::from(LEASE_TERM) / 4, || DriverMessage::Renew);
        context.send_every(READ_INTERVAL, || DriverMessage::ReadActivity);
        self.rank_context.executors.replenish();
        Ok(())
    }

    async fn handle(
        &mut self,
        message: DriverMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        match message {
            DriverMessage::Worker(event) => self.handle_event(context, event).await,
            DriverMessage::Inventory(reply_to) => {
                self.unlink(context).await;
                reply_to.send(InventorySnapshot {
                    held_ranks: self.worker.held(),
                    devices: self.worker.devices(),
                });
            }
            DriverMessage::Linked(LinkBegin { incarnation, reports, head, at }) => {
                self.link = Some(CurrentLink { incarnation, reports: Some(reports), head, reached_at: at });
                self.handle_event(context, WorkerEvent::Linked).await;
            }
            DriverMessage::Reached(from, at) => {
                if let Some(link) = self.link.as_mut().filter(|link| link.incarnation == from) {
                    link.reached_at = at;
                }
            }
            DriverMessage::Ordered(from, orders) if self.is_linked_by(from) => {
                for order in orders {
                    self.handle_event(context, WorkerEvent::Order(order)).await;
                }
            }
            DriverMessage::Unlinked(from) if self.is_linked_by(from) => self.unlink(context).await,
            DriverMessage::Ordered(from, _) | DriverMessage::Unlinked(from) => {
                tracing::debug!(link = from.0, "ignored a late message of an earlier link");
            }
            DriverMessage::CodeFetched(attempt, result) => {
                self.fetches.remove(&attempt);
                self.handle_event(context, WorkerEvent::CodeFetched(attempt, result)).await;
            }
            DriverMessage::CheckpointsFetched(attempt, fetched) => {
                self.carriers.remove(&attempt);
                self.handle_event(context, WorkerEvent::CheckpointsFetched(attempt, fetched)).await;
            }
            DriverMessage::Alarm => {
                self.alarm = None;
                self.handle_event(context, WorkerEvent::Alarm).await;
            }
            DriverMessage::ReadActivity => self.read_activity(context),
            DriverMessage::Renew => self.renew_leases(),
            DriverMessage::HeadRecovers => self.restart_orphan_timers(),
        }
        Ok(())
    }

    async fn stopped(&mut self) {
        self.rank_context.acknowledgements.drained().await;
    }
}

impl WorkerDriver {
    fn is_linked_by(&self, incarnation: Incarnation) -> bool {
        self.link.as_ref().is_some_and(|link| link.incarnation == incarnation)
    }

    async fn unlink(&mut self, context: &mut Context<Self>) {
        if self.link.take().is_some() {
            self.handle_event(context, WorkerEvent::Unlinked).await;
        }
    }

    /// The only place where the core is called.
    async fn handle_event(&mut self, context: &mut Context<Self>, event: WorkerEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            tracing::debug!(event = %LogView(&event));
            self.now = self.now.max(clock::now());
            let mut effects = Vec::new();
            self.worker.handle(self.now, event, &mut effects);
            for effect in effects {
                tracing::debug!(effect = %LogView(&effect));
                events.extend(self.perform(context, effect).await);
            }
        }
        self.set_alarm(context);
    }

    /// Carries out an effect. Returns the event that it causes at once, if there is one.
    async fn perform(&mut self, context: &Context<Self>, effect: WorkerEffect) -> Option<WorkerEvent> {
        match effect {
            WorkerEffect::Report(report) => self.report(report),
            WorkerEffect::FetchCode(start) => return self.fetch_code(context, *start),
            WorkerEffect::ReleaseCode(attempt) => self.release_code(attempt),
            WorkerEffect::FetchCheckpoints(start) => return self.fetch_checkpoints(context, *start),
            WorkerEffect::AbandonCheckpoints(attempt) => {
                self.carriers.remove(&attempt).iter().for_each(Abandoned::set);
            }
            WorkerEffect::Spawn(start) => self.spawn(context, *start),
            WorkerEffect::Stopping(rank, stopping) => self.command(rank, ExecutorCommand::Stopping(stopping)),
            WorkerEffect::Signal(rank, signal, target) => {
                self.command(rank, ExecutorCommand::Signal(signal, target))
            }
            WorkerEffect::Kill(rank) => self.tell(rank, RankMessage::Kill),
            WorkerEffect::Lease(rank, lease) => self.tell(rank, self.lease(lease)),
            WorkerEffect::Explain(rank, reason) => self.explain(rank, reason).await,
            WorkerEffect::Mps(device, order) => return self.gpus.order(device, order),
            WorkerEffect::Forget(rank) => self.forget(rank),
            WorkerEffect::Allot(attempt, host) => self.allot(context, attempt, host),
        }
        None
    }

    /// A link whose queue is full is dropped, because it ends without its sender. Reports that the next one
    /// of their kind replaces are left out instead.
    fn report(&mut self, report: Report) {
        let Some(link) = &mut self.link else { return };
        let refused = link.reports.as_ref().and_then(|reports| reports.try_send(report).err());
        if let Some(TrySendError::Full(Report::Progress(_) | Report::Telemetry(_))) = refused {
            tracing::debug!(link = link.incarnation.0, "the head accepts reports slowly: one is left out");
        } else if let Some(TrySendError::Full(_)) = refused {
            tracing::warn!(link = link.incarnation.0, "the head accepts no reports: dropping the link");
            link.reports = None;
        }
    }

    /// Begins to make a copy of code for the attempt that it belongs to. Returns the event, if it is clear
    /// that there will be none.
    fn fetch_code(&mut self, context: &Context<Self>, start: RankStart) -> Option<WorkerEvent> {
        let attempt = start.code_owner();
        let Some(link) = &self.link else {
            let failure = StartFailure::NodeProblem("the head cannot be reached".into());
            return Some(WorkerEvent::CodeFetched(attempt, Err(failure)));
        };
        let (head, isolation) = (link.head.clone(), self.rank_context.isolation.clone());
        let abandoned = Abandoned::default();
        self.fetches.insert(attempt, abandoned.clone());
        let (copies, driver) = (Arc::clone(&self.rank_context.code), context.address().clone());
        self.copy_steps.begin(attempt, async move {
            let made = copies.make(head, CopyOrder { start, isolation, abandoned }).await;
            // Without a driver the daemon is stopping; the next one removes the copy.
            let _ = driver.tell(DriverMessage::CodeFetched(attempt, made)).await;
        });
        None
    }

    /// A copy that is still being made is removed when it is there.
    fn release_code(&mut self, attempt: AttemptId) {
        match self.fetches.get(&attempt) {
            Some(abandoned) => abandoned.set(),
            None => {
                let copies = Arc::clone(&self.rank_context.code);
                self.copy_steps.begin(attempt, async move { copies.release(attempt).await });
            }
        }
    }

    /// Begins to take over the checkpoints for the attempt of this rank. Returns the event, if it is clear
    /// that they cannot be had.
    fn fetch_checkpoints(&mut self, context: &Context<Self>, start: RankStart) -> Option<WorkerEvent> {
        let attempt = start.rank.attempt;
        let Some(link) = &self.link else {
            let result = CheckpointResult::Missing("the head cannot be reached".into());
            let fetched = FetchedCheckpoints { result: Some(result), note: None };
            return Some(WorkerEvent::CheckpointsFetched(attempt, fetched));
        };
        let abandoned = Abandoned::default();
        self.carriers.insert(attempt, abandoned.clone());
        let carrier = Carrier {
            head: link.head.clone(),
            state: self.rank_context.state.clone(),
            isolation: self.rank_context.isolation.clone(),
            abandoned,
        };
        let driver = context.address().clone();
        tokio::spawn(async move {
            let fetched = carrier.carry(start).await;
            // Without a driver the daemon is stopping; the rank has not started.
            let _ = driver.tell(DriverMessage::CheckpointsFetched(attempt, fetched)).await;
        });
        None
    }

    fn spawn(&mut self, context: &Context<Self>, start: RankStart) {
        let (id, mps) = (start.rank, self.gpus.mps_of(&start));
        let leased_at = self.link.as_ref().map_or_else(clock::now, |link| link.reached_at);
        let origin = RankOrigin::Ordered(Box::new(start), leased_at, self.rank_context.clone());
        self.hold(context, id, mps, origin);
    }

    fn hold(&mut self, context: &Context<Self>, id: RankId, mps: Option<MpsService>, origin: RankOrigin) {
        let (state, owners) = (self.rank_context.state.clone(), self.gpus.owners.clone());
        let acknowledgements = self.rank_context.acknowledgements.clone();
        let driver = context.address().clone();
        let rank = RankActor::new(id, state, acknowledgements, origin, driver, mps, owners);
        let address = context.spawn_once(ChildSpec::new(id.to_string(), COMMANDS), rank);
        self.ranks.insert(id, address);
    }

    fn directory_of(&self, rank: RankId) -> RankDirectory {
        RankDirectory::for_rank(&self.rank_context.state.ranks(), rank)
    }

    fn command(&self, rank: RankId, command: ExecutorCommand) {
        self.tell(rank, RankMessage::ToExecutor(command));
    }

    fn tell(&self, rank: RankId, message: RankMessage) {
        let Some(address) = self.ranks.get(&rank) else { return };
        match address.try_tell(message) {
            Ok(()) => {}
            Err(TryTellError::Closed(message)) => {
                tracing::debug!(%rank, ?message, "the rank has ended meanwhile")
            }
            // Both are repeated, and fill the queue of a rank that takes long to die.
            Err(TryTellError::Full(message @ (RankMessage::Lease(..) | RankMessage::Kill))) => {
                tracing::debug!(%rank, ?message, "too many messages are queued: dropped one")
            }
            Err(TryTellError::Full(message)) => {
                tracing::warn!(%rank, ?message, "too many messages are queued: dropped one")
            }
        }
    }

    /// Reads what the ranks of interactive jobs do, unless that still goes on.
    fn read_activity(&mut self, context: &Context<Self>) {
        let ranks: Vec<RankId> = self.worker.watched_for_activity().collect();
        if ranks.is_empty() || self.reading.as_ref().is_some_and(|reading| !reading.is_finished()) {
            return;
        }
        let (owners, driver) = (self.gpus.owners.clone(), context.address().clone());
        self.reading = Some(tokio::spawn(async move {
            let times = blocking(move || processor_times(&owners, ranks)).await;
            // Without a driver the daemon is stopping.
            let _ = driver.tell(DriverMessage::Worker(WorkerEvent::ProcessorTime(times))).await;
        }));
    }

    fn renew_leases(&mut self) {
        if self.link.is_some() {
            self.ranks.keys().for_each(|rank| self.tell(*rank, self.lease(Lease::Held)));
        }
    }

    /// A lease as of now: held since the head could last be reached.
    fn lease(&self, lease: Lease) -> RankMessage {
        let reached_at = self.link.as_ref().map(|link| link.reached_at);
        match lease {
            Lease::Held => RankMessage::Lease(lease, reached_at.unwrap_or_else(clock::now)),
            Lease::Orphaned => RankMessage::Lease(lease, clock::now()),
        }
    }

    /// A head in recovery mode gives no job to another node, so the ranks here may go on as if the link had
    /// just ended.
    fn restart_orphan_timers(&mut self) {
        if self.link.is_none() {
            for rank in self.ranks.keys() {
                self.tell(*rank, self.lease(Lease::Held));
                self.tell(*rank, self.lease(Lease::Orphaned));
            }
        }
    }

    /// On disk before the head hears of it: otherwise a daemon that takes over now would report a failure.
    async fn explain(&self, rank: RankId, reason: StopReason) {
        let directory = self.directory_of(rank);
        if let Err(error) = blocking(move || directory.explain(reason)).await {
            tracing::warn!(%rank, ?reason, %error, "the reason why the rank was stopped could not be stored");
        }
    }

    /// The core answers the head only after the limits are in force. Without cgroups the inventory says that
    /// nothing can be changed, so nothing is ordered.
    fn allot(&self, context: &Context<Self>, attempt: AttemptId, host: HostShare) {
        let Some(cgroups) = self.rank_context.cgroups() else { return };
        let driver = context.address().clone();
        tokio::spawn(async move {
            let changed = blocking(move || cgroups.change_share(attempt, host)).await;
            match &changed {
                Ok(ChangedShare { refused: None, .. }) => {}
                Ok(ChangedShare { in_force, refused: Some(error) }) => {
                    tracing::warn!(%attempt, wanted = %host, %in_force, %error, "the kernel refuses its new limits");
                }
                Err(error) => tracing::debug!(%attempt, %error, "its limits are gone"),
            }
            let in_force = changed.ok().map(|changed| changed.in_force);
            // Without a driver the daemon is stopping; the head asks the next one again.
            let event = WorkerEvent::Allotted(attempt, in_force);
            let _ = driver.tell(DriverMessage::Worker(event)).await;
        });
    }

    fn forget(&mut self, rank: RankId) {
        self.ranks.remove(&rank);
        self.rank_context.acknowledgements.add(rank, self.directory_of(rank));
    }

    fn set_alarm(&mut self, context: &mut Context<Self>) {
        let due_at = self.worker.deadline();
        if self.alarm.as_ref().map(|(at, _)| *at) == due_at {
            return;
        }
        if let Some((_, timer)) = self.alarm.take() {
            timer.cancel();
        }
        self.alarm = due_at.map(|at| {
            let pause: Duration = at.since(clock::now()).into();
            (at, context.send_after(pause, DriverMessage::Alarm))
        });
    }
}

/// The view for the log, which leaves out the environment of jobs.
struct LogView<'a, T>(&'a T);

impl fmt::Display for LogView<'_, WorkerEvent> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WorkerEvent::Order(Order::Run(order)) => write!(f, "Order(Run({}))", order.attempt),
            WorkerEvent::Found(found) => write!(f, "Found({})", found.start.rank),
            event @ (WorkerEvent::Order(
                Order::Stop { .. } | Order::Withdraw(_) | Order::Acknowledge(_) | Order::Allot { .. },
            )
            | WorkerEvent::CodeFetched(..)
            | WorkerEvent::CheckpointsFetched(..)
            | WorkerEvent::Spawned(_)
            | WorkerEvent::SpawnFailed(..)
            | WorkerEvent::Exited(..)
            | WorkerEvent::Progress(..)
            | WorkerEvent::Linked
            | WorkerEvent::Unlinked
            | WorkerEvent::Mps(..)
            | WorkerEvent::Sharing(..)
            | WorkerEvent::PrivateUser(..)
            | WorkerEvent::Sampled(_)
            | WorkerEvent::ProcessorTime(_)
            | WorkerEvent::Xid(..)
            | WorkerEvent::Allotted(..)
            | WorkerEvent::Alarm) => write!(f, "{event:?}"),
        }
    }
}

impl fmt::Display for LogView<'_, WorkerEffect> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WorkerEffect::Spawn(start) => write!(f, "Spawn({})", start.rank),
            WorkerEffect::FetchCode(start) => write!(f, "FetchCode({})", start.rank.attempt),
            WorkerEffect::FetchCheckpoints(start) => write!(f, "FetchCheckpoints({})", start.rank.attempt),
            effect @ (WorkerEffect::Report(_)
            | WorkerEffect::ReleaseCode(_)
            | WorkerEffect::AbandonCheckpoints(_)
            | WorkerEffect::Stopping(..)
            | WorkerEffect::Signal(..)
            | WorkerEffect::Kill(_)
            | WorkerEffect::Lease(..)
            | WorkerEffect::Explain(..)
            | WorkerEffect::Mps(..)
            | WorkerEffect::Forget(_)
            | WorkerEffect::Allot(..)) => {
                write!(f, "{effect:?}")
            }
        }
    }
}

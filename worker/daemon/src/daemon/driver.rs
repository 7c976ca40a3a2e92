//! The driver: gives the worker core its events one after the other, and does what it says, in order.
//!
//! It never waits for a rank or for the link: both have room for what it tells them, and a link that is too
//! slow for its reports is dropped, after which everything that matters is told again over the next one.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, ChildSpec, Context, ReplyTo, TaskHandle, TryTellError};
use cohabit_types::{Device, HeldRank, Incarnation, Order, RankId, Report, Span, StopReason, Time};
use cohabit_worker_core::{Lease, RankStart, Worker, WorkerEffect, WorkerEvent};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::environment::RankContext;
use super::gpu::{GpuManagers, MpsMessage};
use super::rank::{RankActor, RankMessage, RankOrigin};
use super::recovery;
use crate::clock;
use crate::rank_folder::RankDirectory;
use crate::wire::ExecutorCommand;

/// Commands that may wait for a rank's executor; the core sends a handful in all.
const COMMANDS: usize = 64;

/// How long executors go by the last word that the head can be reached. It is repeated several times
/// meanwhile: should this daemon hang, they know it.
pub(crate) const LEASE_TERM: Span = Span::from_secs(10);

/// What the driver is told.
pub(crate) enum DriverMessage {
    /// Something happened to a rank.
    Happened(WorkerEvent),
    /// The link is about to greet the head: how is everything? Orders of earlier links are void from now on.
    Greeting(ReplyTo<InventorySnapshot>),
    /// The head welcomed this link; reports go this way.
    Linked(Incarnation, mpsc::Sender<Report>),
    /// Orders that came over this link.
    Ordered(Incarnation, Vec<Order>),
    /// This link has ended.
    Unlinked(Incarnation),
    /// The core's deadline came.
    Alarm,
    /// It is time to repeat that the head can be reached, if so.
    Renew,
}

/// The part of a greeting that the core knows.
pub(crate) struct InventorySnapshot {
    /// Every rank that is here.
    pub(crate) held: Vec<HeldRank>,
    /// The devices, as they are now.
    pub(crate) devices: Vec<Device>,
}

/// Owner of the worker core.
pub(crate) struct WorkerDriver {
    worker: Worker,
    rank_context: RankContext,
    ranks: BTreeMap<RankId, Address<RankMessage>>,
    gpus: GpuManagers,
    link: Option<CurrentLink>,
    /// The latest time that the core was given.
    now: Time,
    alarm: Option<(Time, TaskHandle)>,
}

/// The link that the core knows of.
struct CurrentLink {
    incarnation: Incarnation,
    /// None when it is being dropped.
    reports: Option<mpsc::Sender<Report>>,
}

impl WorkerDriver {
    pub(crate) fn new(worker: Worker, rank_context: RankContext) -> WorkerDriver {
        let (ranks, gpus) = (BTreeMap::new(), GpuManagers::default());
        WorkerDriver { worker, rank_context, ranks, gpus, link: None, now: Time::EPOCH, alarm: None }
    }
}

impl Actor for WorkerDriver {
    type Message = DriverMessage;

    /// What earlier daemons left comes before everything else.
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        self.gpus = GpuManagers::spawn(context, &self.rank_context);
        for recovered in recovery::recover(&self.rank_context.state, &self.rank_context.gpus).await {
            if let Some(connection) = recovered.connection {
                let start = &recovered.found.start;
                self.hold(context, start.rank, self.gpus.mps_of(start), RankOrigin::Found(connection));
            }
            self.handle_event(context, WorkerEvent::Found(Box::new(recovered.found)));
        }
        self.gpus.settle();
        context.send_every(Duration::from(LEASE_TERM) / 4, || DriverMessage::Renew);
        self.rank_context.executors.replenish();
        Ok(())
    }

    async fn handle(
        &mut self,
        message: DriverMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        match message {
            DriverMessage::Happened(event) => self.handle_event(context, event),
            DriverMessage::Greeting(reply_to) => {
                self.unlink(context);
                reply_to.send(InventorySnapshot { held: self.worker.held(), devices: self.worker.devices() });
            }
            DriverMessage::Linked(incarnation, reports) => {
                self.link = Some(CurrentLink { incarnation, reports: Some(reports) });
                self.handle_event(context, WorkerEvent::Linked);
            }
            DriverMessage::Ordered(from, orders) if self.is_linked_by(from) => {
                orders.into_iter().for_each(|order| self.handle_event(context, WorkerEvent::Order(order)));
            }
            DriverMessage::Unlinked(from) if self.is_linked_by(from) => self.unlink(context),
            DriverMessage::Ordered(from, _) | DriverMessage::Unlinked(from) => {
                tracing::debug!(link = from.0, "a late word of an earlier link is ignored");
            }
            DriverMessage::Alarm => {
                self.alarm = None;
                self.handle_event(context, WorkerEvent::Alarm);
            }
            DriverMessage::Renew => self.renew_leases(),
        }
        Ok(())
    }
}

impl WorkerDriver {
    fn is_linked_by(&self, incarnation: Incarnation) -> bool {
        self.link.as_ref().is_some_and(|link| link.incarnation == incarnation)
    }

    fn unlink(&mut self, context: &mut Context<Self>) {
        if self.link.take().is_some() {
            self.handle_event(context, WorkerEvent::Unlinked);
        }
    }

    /// The one way into the core.
    fn handle_event(&mut self, context: &mut Context<Self>, event: WorkerEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            tracing::debug!(event = %LogView(&event));
            self.now = self.now.max(clock::now());
            let mut effects = Vec::new();
            self.worker.handle(self.now, event, &mut effects);
            for effect in effects {
                tracing::debug!(effect = %LogView(&effect));
                events.extend(self.perform(context, effect));
            }
        }
        self.set_alarm(context);
    }

    /// Says what comes of it at once, if anything does.
    fn perform(&mut self, context: &Context<Self>, effect: WorkerEffect) -> Option<WorkerEvent> {
        match effect {
            WorkerEffect::Report(report) => self.report(report),
            WorkerEffect::Spawn(start) => self.spawn(context, *start),
            WorkerEffect::Stopping(rank, stopping) => self.command(rank, ExecutorCommand::Stopping(stopping)),
            WorkerEffect::Signal(rank, signal, target) => {
                self.command(rank, ExecutorCommand::Signal(signal, target))
            }
            WorkerEffect::Lease(rank, lease) => self.command(rank, ExecutorCommand::Lease(lease)),
            WorkerEffect::Explain(rank, why) => self.explain(rank, why),
            WorkerEffect::Mps(device, order) => return self.gpus.order(device, order),
            WorkerEffect::Forget(rank) => self.forget(rank),
        }
        None
    }

    /// A link that cannot take a report has seen its last: without its sender it ends. What the next report
    /// of its kind brings again is no reason.
    fn report(&mut self, report: Report) {
        let Some(link) = &mut self.link else { return };
        let refused = link.reports.as_ref().and_then(|reports| reports.try_send(report).err());
        if let Some(TrySendError::Full(Report::Progress(_) | Report::Telemetry(_))) = refused {
            tracing::debug!(link = link.incarnation.0, "the head is slow to take reports: one is left out");
        } else if let Some(TrySendError::Full(_)) = refused {
            tracing::warn!(link = link.incarnation.0, "the head takes no reports: the link is dropped");
            link.reports = None;
        }
    }

    fn spawn(&mut self, context: &Context<Self>, start: RankStart) {
        let (id, mps) = (start.rank, self.gpus.mps_of(&start));
        self.hold(context, id, mps, RankOrigin::Ordered(Box::new(start), self.rank_context.clone()));
    }

    fn hold(
        &mut self,
        context: &Context<Self>,
        id: RankId,
        mps: Option<Address<MpsMessage>>,
        origin: RankOrigin,
    ) {
        let rank =
            RankActor::new(id, self.rank_context.state.clone(), origin, context.address().clone(), mps);
        let address = context.spawn_once(ChildSpec::new(id.to_string(), COMMANDS), rank);
        self.ranks.insert(id, address);
    }

    fn folder_of(&self, rank: RankId) -> RankDirectory {
        RankDirectory::of(&self.rank_context.state.ranks(), rank)
    }

    fn command(&self, rank: RankId, command: ExecutorCommand) {
        let Some(address) = self.ranks.get(&rank) else { return };
        match address.try_tell(RankMessage::ToExecutor(command)) {
            Ok(()) => {}
            Err(TryTellError::Closed(_)) => tracing::debug!(%rank, ?command, "it has ended meanwhile"),
            Err(TryTellError::Full(_)) => tracing::warn!(%rank, ?command, "too many commands wait: dropped"),
        }
    }

    fn renew_leases(&mut self) {
        if self.link.is_some() {
            self.ranks.keys().for_each(|rank| self.command(*rank, ExecutorCommand::Lease(Lease::Held)));
        }
    }

    fn explain(&self, rank: RankId, why: StopReason) {
        if let Err(error) = self.folder_of(rank).explain(why) {
            tracing::warn!(%rank, ?why, %error, "why it was stopped is not written down");
        }
    }

    fn forget(&mut self, rank: RankId) {
        self.ranks.remove(&rank);
        if let Err(error) = self.folder_of(rank).acknowledge() {
            tracing::warn!(%rank, %error, "an acknowledged rank will be told of again");
        }
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

/// For the log, without what users have in their environment.
struct LogView<'a, T>(&'a T);

impl fmt::Display for LogView<'_, WorkerEvent> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WorkerEvent::Order(Order::Run(order)) => write!(f, "Order(Run({}))", order.attempt),
            WorkerEvent::Found(found) => write!(f, "Found({})", found.start.rank),
            event @ (WorkerEvent::Order(Order::Stop { .. } | Order::Acknowledge(_))
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
            | WorkerEvent::Xid(..)
            | WorkerEvent::Alarm) => write!(f, "{event:?}"),
        }
    }
}

impl fmt::Display for LogView<'_, WorkerEffect> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            WorkerEffect::Spawn(start) => write!(f, "Spawn({})", start.rank),
            effect @ (WorkerEffect::Report(_)
            | WorkerEffect::Stopping(..)
            | WorkerEffect::Signal(..)
            | WorkerEffect::Lease(..)
            | WorkerEffect::Explain(..)
            | WorkerEffect::Mps(..)
            | WorkerEffect::Forget(_)) => {
                write!(f, "{effect:?}")
            }
        }
    }
}

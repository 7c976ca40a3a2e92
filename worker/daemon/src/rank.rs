//! The actor of one rank: starts it through an executor or adopts it, passes messages both ways, and reports
//! how it ended.
//!
//! The end of the connection is the end of the rank: the executor has told the outcome, or it is in the
//! directory of the rank. If it is not, the rank is lost, and whatever is left of it is killed before the
//! loss is reported.

use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context, blocking};
use cohabit_host::clock;
use cohabit_host::format::JsonLine;
use cohabit_host::messages::{ExecutorCommand, ExecutorEvent};
use cohabit_host::rank_directory::{Flush, RankDirectory};
use cohabit_host::records::OutcomeRecord;
use cohabit_types::{Outcome, RankId, Signal, StartFailure, Time};
use cohabit_worker_core::{Lease, RankExit, RankStart, WorkerEvent};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;

use crate::acknowledgements::Acknowledgements;
use crate::executor_pool::{ExecutorHandle, ExecutorPool};
use crate::gpu::{MpsMessage, MpsService, ProcessOwners};
use crate::messages::DriverMessage;
use crate::rank_context::RankContext;
use crate::rank_exit;
use crate::spawn::{self, ExecutorConnection, ExecutorLines, SpawnError, SpawnedRank};
use crate::state_directory::StateDirectory;

/// How long reporting the end of a rank may wait for the examination of its MPS server.
const EXAMINE_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a rank did not start that its executor did not start in time.
const TOO_SLOW: &str = "it was not started in time: its PATH, its working directory, its directory for checkpoints or the \
     file system that they are on did not answer";

/// Messages to the rank actor.
#[derive(Debug)]
pub(crate) enum RankMessage {
    /// Send this command to the executor.
    ToExecutor(ExecutorCommand),
    /// Kill the rank and its executor, which has not started or ended it in time.
    Kill,
    /// Tell the executor whether the head could be reached at this time.
    Lease(Lease, Time),
    /// The executor sent this event.
    FromExecutor(ExecutorEvent),
    /// The connection has ended.
    Disconnected,
}

/// Where a rank comes from.
pub(crate) enum RankOrigin {
    /// The head, which could be reached at this time, ordered to start it.
    Ordered(Box<RankStart>, Time, RankContext),
    /// Its executor was adopted.
    Found(AdoptedExecutor),
}

/// The executor of a rank that an earlier daemon started.
pub(crate) struct AdoptedExecutor {
    pub(crate) connection: ExecutorConnection,
    /// The process of the rank has been running since this time.
    pub(crate) started_at: Time,
    pub(crate) leases: LeaseFormat,
}

/// Which words about leases an executor understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseFormat {
    WithTimes,
    /// That of release 0.1.
    WithoutTimes,
}

/// One rank.
pub(crate) struct RankActor {
    id: RankId,
    directory: RankDirectory,
    state: StateDirectory,
    acknowledgements: Acknowledgements,
    /// `None` once the rank is attached.
    origin: Option<RankOrigin>,
    driver: Address<DriverMessage>,
    /// The MPS daemon whose client it is.
    mps: Option<MpsService>,
    owners: ProcessOwners,
    commands: Option<OwnedWriteHalf>,
    /// Its executor, if this daemon started it, and the pool to which the executor returns.
    executor: Option<(ExecutorHandle, ExecutorPool)>,
    leases: LeaseFormat,
    /// How it ended, as its executor told.
    ended: Option<OutcomeRecord>,
    /// Whether it was killed with its executor, which did not act.
    is_killed: bool,
    reported: ReportedState,
}

/// What the core knows about the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportedState {
    Starting,
    /// Its process has been running since this time.
    Running(Time),
}

impl RankActor {
    pub(crate) fn new(
        id: RankId,
        state: StateDirectory,
        acknowledgements: Acknowledgements,
        origin: RankOrigin,
        driver: Address<DriverMessage>,
        mps: Option<MpsService>,
        owners: ProcessOwners,
    ) -> RankActor {
        let reported = match origin {
            RankOrigin::Ordered(..) => ReportedState::Starting,
            RankOrigin::Found(AdoptedExecutor { started_at, .. }) => ReportedState::Running(started_at),
        };
        let leases = match origin {
            RankOrigin::Ordered(..) => LeaseFormat::WithTimes,
            RankOrigin::Found(AdoptedExecutor { leases, .. }) => leases,
        };
        let directory = RankDirectory::for_rank(&state.ranks(), id);
        RankActor {
            id,
            directory,
            state,
            acknowledgements,
            origin: Some(origin),
            driver,
            mps,
            owners,
            commands: None,
            executor: None,
            leases,
            ended: None,
            is_killed: false,
            reported,
        }
    }
}

impl Actor for RankActor {
    type Message = RankMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        if let Some(limit) = self.mps.as_ref().map(|mps| mps.limit) {
            self.tell_mps(MpsMessage::Joined(self.id, limit)).await;
        }
        match self.origin.take() {
            Some(RankOrigin::Found(found)) => self.attach(context, found.connection),
            Some(RankOrigin::Ordered(start, leased_at, rank_context)) => {
                self.start(context, *start, leased_at, rank_context).await
            }
            None => {}
        }
        Ok(())
    }

    async fn handle(
        &mut self,
        message: RankMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        match message {
            RankMessage::ToExecutor(command) => self.send(command).await,
            RankMessage::Kill => self.kill().await,
            RankMessage::Lease(lease, at) => match self.leases {
                LeaseFormat::WithTimes => self.send(ExecutorCommand::LeaseAt(lease, at)).await,
                LeaseFormat::WithoutTimes => self.send(ExecutorCommand::Lease(lease)).await,
            },
            // Only recovery needs it: this daemon ordered the stop itself.
            RankMessage::FromExecutor(ExecutorEvent::Stopping(_)) => {}
            RankMessage::FromExecutor(ExecutorEvent::Started(at)) => self.runs(at).await,
            RankMessage::FromExecutor(ExecutorEvent::Process(pid)) => {
                self.tell_mps(MpsMessage::Runs(self.id, pid)).await
            }
            RankMessage::FromExecutor(ExecutorEvent::Progress(progress)) => {
                self.tell(WorkerEvent::Progress(self.id, progress)).await
            }
            RankMessage::FromExecutor(ExecutorEvent::Ended(ended)) => self.ended = Some(*ended),
            RankMessage::Disconnected => {
                let ended = match (self.ended.take(), self.is_killed) {
                    (Some(ended), _) => ended,
                    (None, true) => rank_exit::outcome_of_killed(&self.directory, self.killed()).await,
                    (None, false) => rank_exit::determine_outcome(&self.directory).await,
                };
                self.state.rank_has_ended();
                self.owners.rank_ended(self.id);
                self.release(&ended);
                self.report_end(ended).await;
                self.tell_mps(MpsMessage::Left(self.id)).await;
                context.stop();
            }
        }
        Ok(())
    }
}

impl RankActor {
    async fn start(
        &mut self,
        context: &mut Context<Self>,
        start: RankStart,
        leased_at: Time,
        rank_context: RankContext,
    ) {
        let executors = rank_context.executors.clone();
        match spawn::spawn(start, leased_at, rank_context).await {
            Ok(SpawnedRank { executor, connection, private_uid }) => {
                if let Some(uid) = private_uid {
                    tracing::info!(rank = %self.id, uid, "its user has no account on this host");
                    self.tell(WorkerEvent::PrivateUser(self.id, uid)).await;
                }
                if let Some(watchdog) = executor.watchdog() {
                    self.owners.rank_started(self.id, watchdog);
                }
                self.attach(context, connection);
                executors.replenish();
                self.executor = Some((executor, executors));
            }
            Err(error) => {
                self.not_started(&error).await;
                self.tell_mps(MpsMessage::Left(self.id)).await;
                context.stop();
            }
        }
    }

    fn attach(&mut self, context: &mut Context<Self>, connection: ExecutorConnection) {
        self.commands = Some(connection.commands);
        context.spawn_task(receive_events(connection.events, context.address().clone()));
    }

    /// Writes an outcome, so that the next daemon does not take the directory for a lost rank.
    async fn not_started(&self, error: &SpawnError) {
        tracing::warn!(rank = %self.id, %error, "an executor could not be started");
        let failure = error.failure();
        if !matches!(error, SpawnError::Held(_)) {
            let ended = OutcomeRecord::without_start(Outcome::NotStarted(failure.clone()), clock::now());
            let directory = self.directory.clone();
            // If this fails, too, there is hardly a directory that could be found later.
            let _ = blocking(move || directory.write_ended(&ended, Flush::Now)).await;
        }
        self.tell(WorkerEvent::SpawnFailed(self.id, failure)).await;
    }

    /// If the executor is gone, the connection ends.
    async fn send(&mut self, command: ExecutorCommand) {
        if let Some(commands) = &mut self.commands
            && let Err(error) = commands.write_all(&command.encode()).await
        {
            tracing::debug!(rank = %self.id, ?command, %error, "a command could not be sent to the executor");
        }
    }

    async fn runs(&mut self, started_at: Time) {
        if self.reported == ReportedState::Starting {
            self.reported = ReportedState::Running(started_at);
            tracing::info!(rank = %self.id, "is running");
            self.tell(WorkerEvent::Spawned(self.id)).await;
        }
    }

    /// The connection to the executor ends then.
    async fn kill(&mut self) {
        tracing::warn!(rank = %self.id, state = ?self.reported, "its executor does not act: killing both");
        self.is_killed = true;
        let watchdog = self.executor.take().and_then(|(executor, _)| executor.watchdog().cloned());
        rank_exit::kill(&self.directory, watchdog).await;
    }

    /// The end of a killed rank. Whether it ran is known when its connection has ended: word that it had
    /// started may have come while it was being killed.
    fn killed(&self) -> OutcomeRecord {
        let (outcome, started_at) = match self.reported {
            ReportedState::Starting => (Outcome::NotStarted(StartFailure::Other(TOO_SLOW.into())), None),
            ReportedState::Running(at) => (Outcome::Signalled(Signal::KILL), Some(at)),
        };
        OutcomeRecord { started_at, ..OutcomeRecord::without_start(outcome, clock::now()) }
    }

    async fn report_end(&mut self, ended: OutcomeRecord) {
        tracing::info!(rank = %self.id, outcome = %ended.ending.outcome, "has ended");
        if !ended.ending.outcome.succeeded() {
            self.examine_mps().await;
        }
        match (ended.started_at, ended.ending.outcome) {
            (None, Outcome::NotStarted(failure)) => {
                self.tell(WorkerEvent::SpawnFailed(self.id, failure)).await
            }
            (_, outcome) => {
                if let Some(started_at) = ended.started_at {
                    self.runs(started_at).await;
                }
                if let Some(progress) = ended.progress {
                    self.tell(WorkerEvent::Progress(self.id, progress)).await;
                }
                let ending = RankExit { outcome, ..ended.ending };
                self.tell(WorkerEvent::Exited(self.id, ending)).await;
            }
        }
    }

    /// Returns the executor to the pool, unless it was lost. The outcome is flushed to disk soon, unless the
    /// head acknowledges it before.
    fn release(&mut self, ended: &OutcomeRecord) {
        if matches!(ended.ending.outcome, Outcome::Lost(_)) {
            self.executor = None;
        }
        if let Some((executor, executors)) = self.executor.take() {
            executors.keep(executor);
        }
        self.acknowledgements.expect(self.id, self.directory.clone());
    }

    /// A fault on its GPU may have ended the rank. The core must hear of the fault first, to distinguish its
    /// culprit from its victims.
    async fn examine_mps(&self) {
        if let Some(mps) = &self.mps
            && let Err(error) = mps.address.ask_within(EXAMINE_TIMEOUT, MpsMessage::Examine).await
        {
            tracing::warn!(rank = %self.id, %error, "it is unknown whether an MPS fault ended the rank");
        }
    }

    /// Does nothing if the actor has ended.
    async fn tell_mps(&self, message: MpsMessage) {
        if let Some(mps) = &self.mps {
            let _ = mps.address.tell(message).await;
        }
    }

    /// Does nothing if the daemon is stopping; the next one recovers the rank.
    async fn tell(&self, event: WorkerEvent) {
        let _ = self.driver.tell(DriverMessage::Worker(event)).await;
    }
}

/// Receives events until the connection ends. Events of a later version are passed over.
async fn receive_events(mut events: ExecutorLines, rank: Address<RankMessage>) {
    while let Ok(Some(text)) = events.next_line().await {
        let sent = match ExecutorEvent::decode(&text) {
            Ok(event) => rank.tell(RankMessage::FromExecutor(event)).await,
            Err(error) => {
                tracing::debug!(%error, text, "passed over an unknown message of an executor");
                Ok(())
            }
        };
        if sent.is_err() {
            return;
        }
    }
    // Without an actor the daemon is stopping.
    let _ = rank.tell(RankMessage::Disconnected).await;
}

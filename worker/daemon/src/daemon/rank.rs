//! One rank as the daemon sees it: starts its executor or takes it over, passes words both ways, and finds
//! out how it ended.
//!
//! The end of the connection is the end of the rank: how it ended is in its folder then. An executor that
//! left nothing there was lost, and whatever it held is killed before that is told.

use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context};
use cohabit_types::{Outcome, RankId, StartFailure};
use cohabit_worker_core::{RankExit, RankStart, WorkerEvent};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::driver::DriverMessage;
use super::ending;
use super::environment::RankContext;
use super::executors::{ExecutorHandle, ExecutorPool};
use super::gpu::MpsMessage;
use super::spawn::{self, ExecutorConnection, ExecutorLines, SpawnError, Spawned};
use super::state::StateDirectory;
use crate::clock;
use crate::files::is_of_machine;
use crate::rank_folder::{Flush, OutcomeRecord, RankDirectory};
use crate::wire::{ExecutorCommand, ExecutorEvent, line};

/// How long the end of a rank may wait for word of its MPS server.
const EXAMINE_TIMEOUT: Duration = Duration::from_secs(3);

/// Outcomes that the head has not acknowledged for so long are made durable.
const FLUSH_DELAY: Duration = Duration::from_secs(1);

/// What the actor of a rank is told.
pub(crate) enum RankMessage {
    /// Tell the executor.
    ToExecutor(ExecutorCommand),
    /// The executor said this.
    FromExecutor(ExecutorEvent),
    /// The connection has ended.
    Disconnected,
}

/// How the daemon comes to a rank.
pub(crate) enum RankOrigin {
    /// By an order to start it.
    Ordered(Box<RankStart>, RankContext),
    /// By finding its executor.
    Found(ExecutorConnection),
}

/// One rank.
pub(crate) struct RankActor {
    id: RankId,
    folder: RankDirectory,
    state: StateDirectory,
    /// None once the rank is held.
    origin: Option<RankOrigin>,
    driver: Address<DriverMessage>,
    /// Who looks after the MPS daemon whose client it is.
    mps: Option<Address<MpsMessage>>,
    commands: Option<OwnedWriteHalf>,
    /// Who holds it, if this daemon gave it to them, and those among whom they are when it has ended.
    executor: Option<(ExecutorHandle, ExecutorPool)>,
    life: ReportedState,
}

/// What the core knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportedState {
    Starting,
    Running,
}

impl RankActor {
    pub(crate) fn new(
        id: RankId,
        state: StateDirectory,
        origin: RankOrigin,
        driver: Address<DriverMessage>,
        mps: Option<Address<MpsMessage>>,
    ) -> RankActor {
        let life = match origin {
            RankOrigin::Ordered(..) => ReportedState::Starting,
            RankOrigin::Found(_) => ReportedState::Running,
        };
        let folder = RankDirectory::of(&state.ranks(), id);
        RankActor {
            id,
            folder,
            state,
            origin: Some(origin),
            driver,
            mps,
            commands: None,
            executor: None,
            life,
        }
    }
}

impl Actor for RankActor {
    type Message = RankMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        self.tell_mps(MpsMessage::Joined(self.id)).await;
        match self.origin.take() {
            Some(RankOrigin::Found(connection)) => self.attach(context, connection),
            Some(RankOrigin::Ordered(start, rank_context)) => self.start(context, *start, rank_context).await,
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
            RankMessage::ToExecutor(command) => self.pass(command).await,
            RankMessage::FromExecutor(ExecutorEvent::Stopping(_)) => {}
            RankMessage::FromExecutor(ExecutorEvent::Started(_)) => self.runs().await,
            RankMessage::FromExecutor(ExecutorEvent::Process(pid)) => {
                self.tell_mps(MpsMessage::Runs(self.id, pid)).await
            }
            RankMessage::FromExecutor(ExecutorEvent::Progress(progress)) => {
                self.tell(WorkerEvent::Progress(self.id, progress)).await
            }
            RankMessage::Disconnected => {
                let ended = ending::of(&self.folder).await;
                self.state.rank_has_ended();
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
    async fn start(&mut self, context: &mut Context<Self>, start: RankStart, rank_context: RankContext) {
        let executors = rank_context.executors.clone();
        match spawn::spawn(start, rank_context).await {
            Ok(Spawned { executor, connection, private_uid }) => {
                if let Some(uid) = private_uid {
                    tracing::info!(rank = %self.id, uid, "its user has no account here");
                    self.tell(WorkerEvent::PrivateUser(self.id, uid)).await;
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
        context.spawn_task(listen(connection.words, context.address().clone()));
    }

    /// What is in the folder by now must not be taken for a rank that was lost.
    async fn not_started(&self, error: &SpawnError) {
        tracing::warn!(rank = %self.id, %error, "an executor could not be started");
        let failure = match error {
            SpawnError::PortTaken(port) => StartFailure::PortTaken(*port),
            SpawnError::Account(why) => StartFailure::Account(why.to_string()),
            SpawnError::File(trouble) if trouble.is_of_machine() => {
                StartFailure::NodeTrouble(trouble.to_string())
            }
            SpawnError::ExecutorConnection(trouble) if is_of_machine(trouble) => {
                StartFailure::NodeTrouble(error.to_string())
            }
            SpawnError::Held(_)
            | SpawnError::File(_)
            | SpawnError::CutShort(_)
            | SpawnError::ExecutorConnection(_) => StartFailure::Other(error.to_string()),
        };
        if !matches!(error, SpawnError::Held(_)) {
            let ended = OutcomeRecord::without_start(Outcome::NotStarted(failure.clone()), clock::now());
            // Where even that cannot be written, there is hardly a folder to be found.
            let _ = self.folder.write_ended(&ended, Flush::Now);
        }
        self.tell(WorkerEvent::SpawnFailed(self.id, failure)).await;
    }

    /// If the executor is gone, the end of the connection will say so.
    async fn pass(&mut self, command: ExecutorCommand) {
        if let Some(commands) = &mut self.commands
            && let Err(error) = commands.write_all(&line(&command)).await
        {
            tracing::debug!(rank = %self.id, ?command, %error, "the executor cannot be told");
        }
    }

    async fn runs(&mut self) {
        if self.life == ReportedState::Starting {
            self.life = ReportedState::Running;
            tracing::info!(rank = %self.id, "runs");
            self.tell(WorkerEvent::Spawned(self.id)).await;
        }
    }

    async fn report_end(&mut self, ended: OutcomeRecord) {
        tracing::info!(rank = %self.id, outcome = %ended.ending.outcome, "is over");
        if !ended.ending.outcome.succeeded() {
            self.examine_mps().await;
        }
        match (ended.started_at, ended.ending.outcome) {
            (None, Outcome::NotStarted(failure)) => {
                self.tell(WorkerEvent::SpawnFailed(self.id, failure)).await
            }
            (_, outcome) => {
                if ended.started_at.is_some() {
                    self.runs().await;
                }
                if let Some(progress) = ended.progress {
                    self.tell(WorkerEvent::Progress(self.id, progress)).await;
                }
                let ending = RankExit { outcome, ..ended.ending };
                self.tell(WorkerEvent::Exited(self.id, ending)).await;
            }
        }
    }

    /// Its executor may hold another, if it was not lost. The outcome must be durable before long, if the
    /// head does not say that it knows it.
    fn release(&mut self, ended: &OutcomeRecord) {
        if matches!(ended.ending.outcome, Outcome::Lost(_)) {
            self.executor = None;
        }
        if let Some((executor, executors)) = self.executor.take() {
            executors.keep(executor);
        }
        tokio::spawn(flush(self.folder.clone()));
    }

    /// The end may come of a fault on its GPU, of which the core must hear first: only so it can tell the
    /// culprit from those who lost by it.
    async fn examine_mps(&self) {
        if let Some(mps) = &self.mps
            && let Err(error) = mps.ask_within(EXAMINE_TIMEOUT, MpsMessage::Examine).await
        {
            tracing::warn!(rank = %self.id, %error, "it is not known whether a fault of MPS ended it");
        }
    }

    /// Without its actor nobody looks after the MPS daemon any more.
    async fn tell_mps(&self, message: MpsMessage) {
        if let Some(mps) = &self.mps {
            let _ = mps.tell(message).await;
        }
    }

    /// Without a driver the daemon is stopping, and the next one will find the rank.
    async fn tell(&self, event: WorkerEvent) {
        let _ = self.driver.tell(DriverMessage::Happened(event)).await;
    }
}

/// Not by the actor, which ends before: the head answers sooner, or this is the last chance.
async fn flush(folder: RankDirectory) {
    sleep(FLUSH_DELAY).await;
    if folder.is_acknowledged() {
        return;
    }
    let flushed = spawn_blocking(move || (folder.flush_ended(), folder)).await;
    if let Ok((Err(error), folder)) = flushed {
        tracing::warn!(folder = %folder.path().display(), %error, "an outcome may not survive a power cut");
    }
}

/// Hears the executor out. A word of another version is passed over.
async fn listen(mut words: ExecutorLines, rank: Address<RankMessage>) {
    while let Ok(Some(text)) = words.next_line().await {
        let told = match serde_json::from_str(&text) {
            Ok(word) => rank.tell(RankMessage::FromExecutor(word)).await,
            Err(error) => {
                tracing::warn!(%error, "an executor says what makes no sense");
                Ok(())
            }
        };
        if told.is_err() {
            return;
        }
    }
    // Without an actor nobody waits for the end.
    let _ = rank.tell(RankMessage::Disconnected).await;
}

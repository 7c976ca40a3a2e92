//! One rank as the daemon sees it: starts its executor or takes it over, passes words both ways, and finds
//! out how it ended.
//!
//! The end of the connection is the end of the rank: how it ended is in its folder then. An executor that
//! left nothing there was lost, and whatever it held is killed before that is told.

use std::time::Duration;

use cohabit_actor::{Actor, Address, Context, Failure};
use cohabit_types::{Outcome, RankId, StartFailure};
use cohabit_worker_core::{Ending, Event, RankStart};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::driver::DriverMessage;
use super::ending;
use super::environment::Surroundings;
use super::executors::{Executor, Executors};
use super::gpu::MpsMessage;
use super::spawn::{self, Connection, SpawnError, Spawned, Words};
use super::state::StateFolder;
use crate::clock;
use crate::files::is_of_machine;
use crate::rank_folder::{Ended, Flush, RankFolder};
use crate::wire::{Command, Word, line};

/// How long the end of a rank may wait for word of its MPS server.
const EXAMINATION: Duration = Duration::from_secs(3);

/// Outcomes that the head has not acknowledged for so long are made durable.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(1);

/// What the actor of a rank is told.
pub(crate) enum RankMessage {
    /// Tell the executor.
    Pass(Command),
    /// The executor said this.
    Said(Word),
    /// The connection has ended.
    HungUp,
}

/// How the daemon comes to a rank.
pub(crate) enum Origin {
    /// By an order to start it.
    Ordered(Box<RankStart>, Surroundings),
    /// By finding its executor.
    Found(Connection),
}

/// One rank.
pub(crate) struct Rank {
    id: RankId,
    folder: RankFolder,
    state: StateFolder,
    /// None once the rank is held.
    origin: Option<Origin>,
    driver: Address<DriverMessage>,
    /// Who looks after the MPS daemon whose client it is.
    mps: Option<Address<MpsMessage>>,
    commands: Option<OwnedWriteHalf>,
    /// Who holds it, if this daemon gave it to them, and those among whom they are when it has ended.
    executor: Option<(Executor, Executors)>,
    life: Life,
}

/// What the core knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Starting,
    Running,
}

impl Rank {
    pub(crate) fn new(
        id: RankId,
        state: StateFolder,
        origin: Origin,
        driver: Address<DriverMessage>,
        mps: Option<Address<MpsMessage>>,
    ) -> Rank {
        let life = match origin {
            Origin::Ordered(..) => Life::Starting,
            Origin::Found(_) => Life::Running,
        };
        let folder = RankFolder::of(&state.ranks(), id);
        Rank { id, folder, state, origin: Some(origin), driver, mps, commands: None, executor: None, life }
    }
}

impl Actor for Rank {
    type Message = RankMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), Failure> {
        self.tell_mps(MpsMessage::Joined(self.id)).await;
        match self.origin.take() {
            Some(Origin::Found(connection)) => self.attach(context, connection),
            Some(Origin::Ordered(start, surroundings)) => self.start(context, *start, surroundings).await,
            None => {}
        }
        Ok(())
    }

    async fn handle(&mut self, message: RankMessage, context: &mut Context<Self>) -> Result<(), Failure> {
        match message {
            RankMessage::Pass(command) => self.pass(command).await,
            RankMessage::Said(Word::Stopping(_)) => {}
            RankMessage::Said(Word::Started(_)) => self.runs().await,
            RankMessage::Said(Word::Process(pid)) => self.tell_mps(MpsMessage::Runs(self.id, pid)).await,
            RankMessage::Said(Word::Progress(progress)) => {
                self.tell(Event::Progress(self.id, progress)).await
            }
            RankMessage::HungUp => {
                let ended = ending::of(&self.folder).await;
                self.state.rank_has_ended();
                self.release(&ended);
                self.over(ended).await;
                self.tell_mps(MpsMessage::Left(self.id)).await;
                context.stop();
            }
        }
        Ok(())
    }
}

impl Rank {
    async fn start(&mut self, context: &mut Context<Self>, start: RankStart, surroundings: Surroundings) {
        let executors = surroundings.executors.clone();
        match spawn::spawn(start, surroundings).await {
            Ok(Spawned { executor, connection, private_uid }) => {
                if let Some(uid) = private_uid {
                    tracing::info!(rank = %self.id, uid, "its user has no account here");
                    self.tell(Event::PrivateUser(self.id, uid)).await;
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

    fn attach(&mut self, context: &mut Context<Self>, connection: Connection) {
        self.commands = Some(connection.commands);
        context.alongside(listen(connection.words, context.address().clone()));
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
            SpawnError::Connection(trouble) if is_of_machine(trouble) => {
                StartFailure::NodeTrouble(error.to_string())
            }
            SpawnError::Held(_)
            | SpawnError::File(_)
            | SpawnError::CutShort(_)
            | SpawnError::Connection(_) => StartFailure::Other(error.to_string()),
        };
        if !matches!(error, SpawnError::Held(_)) {
            let ended = Ended::without_start(Outcome::NotStarted(failure.clone()), clock::now());
            // Where even that cannot be written, there is hardly a folder to be found.
            let _ = self.folder.write_ended(&ended, Flush::Now);
        }
        self.tell(Event::SpawnFailed(self.id, failure)).await;
    }

    /// If the executor is gone, the end of the connection will say so.
    async fn pass(&mut self, command: Command) {
        if let Some(commands) = &mut self.commands
            && let Err(error) = commands.write_all(&line(&command)).await
        {
            tracing::debug!(rank = %self.id, ?command, %error, "the executor cannot be told");
        }
    }

    async fn runs(&mut self) {
        if self.life == Life::Starting {
            self.life = Life::Running;
            tracing::info!(rank = %self.id, "runs");
            self.tell(Event::Spawned(self.id)).await;
        }
    }

    async fn over(&mut self, ended: Ended) {
        tracing::info!(rank = %self.id, outcome = %ended.ending.outcome, "is over");
        if !ended.ending.outcome.succeeded() {
            self.examine_mps().await;
        }
        match (ended.started_at, ended.ending.outcome) {
            (None, Outcome::NotStarted(failure)) => self.tell(Event::SpawnFailed(self.id, failure)).await,
            (_, outcome) => {
                if ended.started_at.is_some() {
                    self.runs().await;
                }
                if let Some(progress) = ended.progress {
                    self.tell(Event::Progress(self.id, progress)).await;
                }
                let ending = Ending { outcome, ..ended.ending };
                self.tell(Event::Exited(self.id, ending)).await;
            }
        }
    }

    /// Its executor may hold another, if it was not lost. The outcome must be durable before long, if the
    /// head does not say that it knows it.
    fn release(&mut self, ended: &Ended) {
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
            && let Err(error) = mps.ask_within(EXAMINATION, MpsMessage::Examine).await
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
    async fn tell(&self, event: Event) {
        let _ = self.driver.tell(DriverMessage::Happened(event)).await;
    }
}

/// Not by the actor, which ends before: the head answers sooner, or this is the last chance.
async fn flush(folder: RankFolder) {
    sleep(ACKNOWLEDGED_WITHIN).await;
    if folder.is_acknowledged() {
        return;
    }
    let flushed = spawn_blocking(move || (folder.flush_ended(), folder)).await;
    if let Ok((Err(error), folder)) = flushed {
        tracing::warn!(folder = %folder.path().display(), %error, "an outcome may not survive a power cut");
    }
}

/// Hears the executor out. A word of another version is passed over.
async fn listen(mut words: Words, rank: Address<RankMessage>) {
    while let Ok(Some(text)) = words.next_line().await {
        let told = match serde_json::from_str(&text) {
            Ok(word) => rank.tell(RankMessage::Said(word)).await,
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
    let _ = rank.tell(RankMessage::HungUp).await;
}

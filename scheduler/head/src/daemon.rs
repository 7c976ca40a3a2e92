//! The head daemon: what is opened at a start, in which order, and how it all ends.
//!
//! ```text
//! state folder ─> identity, tokens ─> port ─> journal ─> replay ─> writer, planner, driver ─> sessions
//! ```
//!
//! The end goes the other way. A daemon that is dropped ends like one that is killed, only that its state
//! folder is free when the drop returns. Neither ends any job.

mod first_start;
mod scheduling;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{ActorSystem, ActorSystemError, Address, ChildSpec, RestartPolicy};
use cohabit_net::{Fingerprint, HeadIdentity, Listener, TokenStore, raise_open_file_limit};
use cohabit_policy::interference::SoloMetricsTable;
use cohabit_policy::parse_policy;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::clock::Clock;
use crate::driver::{self, Driver, DriverParts, InterferenceAwareness, Message, Question, Snapshots};
use crate::estimates::{Estimates, MAX_TRAINING_JOBS};
use crate::history::HistoryReader;
use crate::interference::PastObservations;
use crate::journal::{Journal, JournalWriter, SqliteJournal, Write};
use crate::planner::PolicyFactory;
use crate::recovery::{RecoveredHead, recover};
use crate::sessions::{SessionContext, Sessions};
use crate::state_dir::StateDir;
use crate::watchers::Watchers;
use crate::{HeadError, HeadOptions};
use scheduling::Scheduling;

/// How long a clean end may take.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// A running head.
pub struct HeadDaemon {
    address: SocketAddr,
    fingerprint: Fingerprint,
    /// Until it has ended.
    running: Option<RunningHead>,
    /// Let go of last: the lock of the folder.
    state: StateDir,
}

/// What ends with the head.
struct RunningHead {
    stop: oneshot::Sender<()>,
    actors: JoinHandle<Result<(), ActorSystemError>>,
    journal: JournalWriter,
}

/// What is known before the first actor runs.
struct OpenState {
    state: StateDir,
    identity: HeadIdentity,
    tokens: TokenStore,
}

/// What the journal gives at a start.
struct ReplayedJournal {
    recovered: RecoveredHead,
    journal: SqliteJournal,
    history: HistoryReader,
    estimates: Estimates,
    past: PastObservations,
}

impl HeadDaemon {
    /// Starts a head. It listens, and its journal is replayed, when this returns.
    ///
    /// # Errors
    /// Why it cannot start, and what to do; nothing that was there is overwritten.
    pub async fn start(options: HeadOptions) -> Result<HeadDaemon, HeadError> {
        let name = options.policy.clone();
        let awareness = scheduling::awareness(&name)?;
        let policy = move || parse_policy(&name).expect("the name was checked at the start");
        HeadDaemon::start_with(options, Arc::new(policy), awareness).await
    }

    /// Starts a head with a policy of one's own.
    pub(crate) async fn start_with(
        options: HeadOptions,
        policy: PolicyFactory,
        awareness: InterferenceAwareness,
    ) -> Result<HeadDaemon, HeadError> {
        raise_open_file_limit();
        let basis = options.interference.clone();
        let base = blocking(move || scheduling::base(&basis, awareness)).await?;
        let folder = options.state_dir.clone();
        let opened = blocking(move || open(folder)).await?;
        let listener = Listener::bind(options.listen, &opened.identity, opened.tokens.clone());
        let listener = listener.await.map_err(|error| HeadError::Listen(error.into()))?;
        let path = opened.state.journal();
        let solos = Arc::clone(&base.solos);
        let replayed = blocking(move || replay(path, &solos)).await?;
        let address = listener.local_addr();
        let scheduling = Scheduling { policy, awareness, base, versions: opened.state.interference() };
        let running = run(&options, scheduling, replayed, opened.tokens, listener).await?;
        opened.state.publish_address(address)?;
        tracing::info!(%address, fingerprint = %opened.identity.fingerprint(), "the head is ready");
        let fingerprint = opened.identity.fingerprint();
        Ok(HeadDaemon { address, fingerprint, running: Some(running), state: opened.state })
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients and workers know the cluster by.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The file with the token that may do everything.
    #[must_use]
    pub fn admin_token_file(&self) -> PathBuf {
        self.state.admin_token()
    }

    /// The file with the token that workers join with.
    #[must_use]
    pub fn worker_token_file(&self) -> PathBuf {
        self.state.worker_token()
    }

    /// The line that makes a machine a worker of this head, to be run where a copy of the token file lies.
    #[must_use]
    pub fn join_command(&self) -> String {
        let file = self.worker_token_file();
        format!("cohabit worker start --join {} --token-file {}", self.address, file.display())
    }

    /// Ends the head in order: what was asked is durable, links are closed, running jobs go on.
    ///
    /// # Errors
    /// What went wrong on the way, or had gone wrong before.
    pub async fn stop(mut self) -> Result<(), HeadError> {
        let withdrawn = self.state.withdraw_address();
        match self.running.take() {
            Some(running) => running.stop().await.and(withdrawn),
            None => withdrawn,
        }
    }

    /// Waits until the head cannot go on; tells why.
    pub async fn failed(&mut self) -> HeadError {
        let Some(running) = &mut self.running else { return HeadError::ended() };
        let ended = (&mut running.actors).await;
        let journal = self.running.take().and_then(|running| running.journal.close().err());
        journal.unwrap_or_else(|| reason(ended).err().unwrap_or_else(HeadError::ended))
    }
}

impl RunningHead {
    async fn stop(self) -> Result<(), HeadError> {
        // Actors that have ended by themselves need no signal.
        let _ = self.stop.send(());
        let ended = reason(self.actors.await);
        let closed = blocking(move || self.journal.close()).await;
        closed.and(ended)
    }
}

impl Drop for HeadDaemon {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.actors.abort();
            if let Err(error) = running.journal.close() {
                tracing::error!(%error, "the journal had failed");
            }
        }
    }
}

/// The state folder with its secrets, made at the first start.
fn open(folder: PathBuf) -> Result<OpenState, HeadError> {
    let state = StateDir::open(&folder)?;
    let identity = HeadIdentity::open_or_create(&state.identity())?;
    let tokens = TokenStore::open(&state.tokens(), identity.fingerprint())?;
    first_start::write_tokens(&state, &tokens)?;
    Ok(OpenState { state, identity, tokens })
}

/// The head as the journal has it, and a history that misses nothing.
fn replay(path: PathBuf, solos: &SoloMetricsTable) -> Result<ReplayedJournal, HeadError> {
    let mut journal = SqliteJournal::open(&path)?;
    let mut recovered = recover(&path, &journal)?;
    let history = HistoryReader::new(&path);
    let missed = history.lacks(std::mem::take(&mut recovered.ended))?;
    let missed = missed.into_iter().map(|record| Write::Ended(Box::new(record)));
    journal.commit(&missed.collect::<Vec<_>>())?;
    let estimates = Estimates::learned_from(&history.newest(MAX_TRAINING_JOBS)?);
    let past = PastObservations::read(&history, &recovered.head, solos)?;
    let (cluster, replayed) = (journal.cluster_id()?, recovered.replayed);
    tracing::info!(journal = %path.display(), cluster, replayed, "the journal was read");
    Ok(ReplayedJournal { recovered, journal, history, estimates, past })
}

/// Puts the actors to work; the driver has started when this returns.
async fn run(
    options: &HeadOptions,
    scheduling: Scheduling,
    replayed: ReplayedJournal,
    tokens: TokenStore,
    listener: Listener,
) -> Result<RunningHead, HeadError> {
    let ReplayedJournal { recovered, journal, history, estimates, past } = replayed;
    let awareness = scheduling.awareness;
    let (given, experience) = (options.clone(), past.experience);
    let (planner, learner) = blocking(move || scheduling.start(&given, experience)).await?;
    let journal = JournalWriter::start(journal).map_err(HeadError::failed)?;
    let watchers = Watchers::default();
    let parts = DriverParts {
        clock: Clock::after(recovered.last),
        head: recovered.head,
        config: options.config.clone(),
        journal: journal.address.clone(),
        planner,
        policy_awareness: awareness,
        learner,
        learn_every: options.learn_every,
        estimates,
        memory_tracker: past.memory_tracker,
        watchers: watchers.clone(),
        snapshots: Snapshots::after(
            recovered.sequence,
            recovered.last,
            recovered.replayed,
            options.snapshot_every,
        ),
        history_retention: options.history_retention,
    };
    let system = ActorSystem::new();
    let driver = spawn_driver(&system, parts);
    let ready = driver.ask(|reply_to| Message::Question(Question::Known(Vec::new(), reply_to))).await;
    if ready.is_err() {
        let ended = system.shutdown(SHUTDOWN_GRACE).await;
        blocking(move || journal.close()).await?;
        ended.map_err(HeadError::failed)?;
        return Err(HeadError::ended());
    }
    let session_context = SessionContext {
        driver,
        watchers,
        history,
        tokens,
        memory: options.config.retention,
        watch_limit: options.watch_limit,
        silence_limit: options.silence_limit,
    };
    let mut sessions = Some(Sessions::new(listener, session_context));
    let once = move || sessions.take().expect("the sessions are never restarted");
    system.spawn(ChildSpec::new("sessions", 1).restart(RestartPolicy::NEVER), once);
    let (stop, stopped) = oneshot::channel();
    let signal = async move { drop(stopped.await) };
    Ok(RunningHead { stop, actors: tokio::spawn(system.run_until(signal, SHUTDOWN_GRACE)), journal })
}

/// The driver cannot be built again: a head that failed is started anew, by replay.
fn spawn_driver(system: &ActorSystem, parts: DriverParts) -> Address<Message> {
    let mut driver = Some(Driver::new(parts));
    let once = move || driver.take().expect("the driver is never restarted");
    system.spawn(
        ChildSpec::new("driver", driver::CAPACITY).restart(RestartPolicy::NEVER).grace(SHUTDOWN_GRACE),
        once,
    )
}

fn reason(ended: Result<Result<(), ActorSystemError>, tokio::task::JoinError>) -> Result<(), HeadError> {
    ended.map_err(HeadError::failed)?.map_err(HeadError::failed)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HeadError> + Send + 'static,
) -> Result<T, HeadError> {
    spawn_blocking(work).await.map_err(HeadError::failed)?
}

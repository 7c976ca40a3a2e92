//! Start and stop of the head daemon.
//!
//! ```text
//! state directory ─> identity, tokens ─> port ─> journal ─> replay ─> writer, planner, driver ─> sessions
//! ```
//!
//! A stop goes the other way. Dropping a daemon ends it like a kill, except that its state directory is
//! unlocked when the drop returns. Neither ends a job.

mod first_start;
mod scheduling;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{ActorSystem, ActorSystemError, Address, ChildSpec, blocking};
#[cfg(test)]
use cohabit_net::Fingerprint;
use cohabit_net::{
    ApplicationTokens, HeadIdentity, Listener, NodeCredentials, TokenStore, raise_open_file_limit,
};
use cohabit_policy::EndedRun;
use cohabit_policy::interference::SoloMetricsTable;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::application_questions::ApplicationQuestions;
use crate::clock::Clock;
use crate::code_cleaner::CodeCleaner;
use crate::code_store::CodeStores;
use crate::driver::{self, Driver, DriverParts, Message, Query, Snapshots};
use crate::ended_runs::{ended_runs, remembering};
use crate::estimates::{Estimates, MAX_TRAINING_JOBS};
use crate::history::HistoryReader;
use crate::interference::PastObservations;
use crate::journal::{Journal, JournalWrite, JournalWriter, SqliteJournal};
use crate::rates::SharedRates;
use crate::recovery::{RecoveredHead, recover_and_upgrade};
use crate::sessions::status::HeadSetup;
use crate::sessions::{AnswerPacer, ForwardLimits, SessionContext, Sessions, UserLimiter};
use crate::state_dir::StateDir;
use crate::update_log::UpdateLog;
use crate::watchers::Watchers;
use crate::{HeadError, HeadOptions};
use scheduling::Scheduling;

pub(crate) use scheduling::ChosenPolicy;

/// How long an orderly stop may take.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// A running head.
pub struct HeadDaemon {
    address: SocketAddr,
    #[cfg(test)]
    fingerprint: Fingerprint,
    /// `None` once it has ended.
    running: Option<RunningHead>,
    /// Holds the lock of the directory, which is released last.
    state: Arc<StateDir>,
}

/// What runs until the head ends.
struct RunningHead {
    stop: oneshot::Sender<()>,
    actors: JoinHandle<Result<(), ActorSystemError>>,
    journal: JournalWriter,
}

/// The state directory and the secrets in it.
struct OpenState {
    state: StateDir,
    identity: HeadIdentity,
    access: AccessStores,
}

/// Who may connect, and as which node.
struct AccessStores {
    tokens: TokenStore,
    credentials: NodeCredentials,
    applications: ApplicationTokens,
}

/// What the journal yields at a start.
struct ReplayedJournal {
    /// The id of the cluster.
    cluster: String,
    recovered: RecoveredHead,
    journal: SqliteJournal,
    history: HistoryReader,
    estimates: Estimates,
    past: PastObservations,
    ended_runs: Vec<EndedRun>,
}

impl HeadDaemon {
    /// Starts a head. When this returns, its journal is replayed and it accepts connections.
    ///
    /// # Errors
    /// Why it cannot start, and what to do about it. Nothing on disk is overwritten.
    pub async fn start(options: HeadOptions) -> Result<HeadDaemon, HeadError> {
        // Files that cannot be read are refused before the state directory is created.
        let given = options.clone();
        let policy = blocking(move || ChosenPolicy::read(&given)).await?;
        HeadDaemon::start_with(options, policy).await
    }

    /// Starts a head with this policy, whatever the options name.
    pub(crate) async fn start_with(
        options: HeadOptions,
        policy: ChosenPolicy,
    ) -> Result<HeadDaemon, HeadError> {
        raise_open_file_limit();
        let (given, source) = (options.clone(), options.interference.clone());
        let opened = blocking(move || {
            // A predictor that cannot be read is refused before the state directory is created.
            let base = scheduling::base_predictor(&source, policy.uses_interference)?;
            open(&given).map(|state| (policy, base, state))
        });
        let (policy, base, opened) = opened.await?;
        let listener = Listener::bind(options.listen, &opened.identity, opened.access.tokens.clone());
        let listener = listener.await.map_err(|error| HeadError::Listen(error.into()))?;
        let (address, fingerprint) = (listener.local_addr(), opened.identity.fingerprint());
        let (path, solos) = (opened.state.journal(), Arc::clone(&base.solos));
        let replayed = blocking(move || replay(path, &solos)).await?;
        let cluster = replayed.cluster.clone();
        let versions = opened.state.interference();
        let scheduling = Scheduling { policy, base, versions };
        let (admin_token, journal) = (opened.state.admin_token(), opened.state.journal());
        let setup = HeadSetup { address, admin_token, journal };
        let code = Arc::new(CodeStores::new(opened.state.code(), &options.limits));
        let running = run(&options, scheduling, replayed, opened.access, code, listener, setup).await?;
        let published = blocking(move || {
            opened.state.note_cluster(&cluster)?;
            opened.state.publish_address(address).map(|()| opened.state)
        });
        let published = published.await;
        // The publication is the last step, so its failure ends all that already runs.
        let state = match published {
            Ok(state) => state,
            Err(error) => return running.stop().await.and(Err(error)),
        };
        tracing::info!(%address, %fingerprint, "the head is ready");
        Ok(HeadDaemon {
            address,
            #[cfg(test)]
            fingerprint,
            running: Some(running),
            state: Arc::new(state),
        })
    }

    /// Where it listens, with the actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The file with the token that workers join with.
    #[must_use]
    pub fn worker_token_file(&self) -> PathBuf {
        self.state.worker_token()
    }

    /// Stops the head in order: accepted requests are durable, links are closed, running jobs go on.
    ///
    /// # Errors
    /// What failed during the stop, or had failed before it.
    pub async fn stop(mut self) -> Result<(), HeadError> {
        let state = Arc::clone(&self.state);
        let withdrawn = blocking(move || state.withdraw_address()).await;
        match self.running.take() {
            Some(running) => running.stop().await.and(withdrawn),
            None => withdrawn,
        }
    }

    /// Waits until the head fails; returns why.
    pub async fn failed(&mut self) -> HeadError {
        let Some(running) = &mut self.running else { return HeadError::ended() };
        let ended = (&mut running.actors).await;
        let journal = match self.running.take() {
            Some(RunningHead { journal, .. }) => blocking(move || journal.close()).await.err(),
            None => None,
        };
        journal.unwrap_or_else(|| actors_result(ended).err().unwrap_or_else(HeadError::ended))
    }
}

#[cfg(test)]
impl HeadDaemon {
    /// The fingerprint of the cluster's certificate authority.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The file with the administrator's token.
    pub(crate) fn admin_token_file(&self) -> PathBuf {
        self.state.admin_token()
    }
}

impl RunningHead {
    async fn stop(self) -> Result<(), HeadError> {
        // Actors that have ended by themselves need no signal.
        let _ = self.stop.send(());
        let ended = actors_result(self.actors.await);
        let closed = blocking(move || self.journal.close()).await;
        closed.and(ended)
    }
}

impl Drop for HeadDaemon {
    /// Blocks until the journal is closed, so that another head can use the directory; use
    /// [`HeadDaemon::stop`] on an async thread.
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.actors.abort();
            if let Err(error) = running.journal.close() {
                tracing::error!(%error, "the journal had failed");
            }
        }
    }
}

/// Opens the state directory and its secrets, which the first start creates.
fn open(options: &HeadOptions) -> Result<OpenState, HeadError> {
    let state = StateDir::open(&options.state_dir)?;
    if !options.new_cluster {
        state.check_journal()?;
    }
    let identity = HeadIdentity::open_or_create(&state.identity())?;
    let tokens = TokenStore::open(&state.tokens(), identity.fingerprint())?;
    first_start::write_tokens(&state, &tokens)?;
    let credentials = NodeCredentials::open(&state.node_credentials())?;
    let applications = ApplicationTokens::open(&state.application_key(), tokens.clone())?;
    Ok(OpenState { state, identity, access: AccessStores { tokens, credentials, applications } })
}

/// Rebuilds the head from the journal, and adds to the history the ended jobs, misfits, usage of GPUs, archived
/// jobs, entries of the feed and sums of reports that it misses.
fn replay(path: PathBuf, solos: &SoloMetricsTable) -> Result<ReplayedJournal, HeadError> {
    let mut journal = SqliteJournal::open(&path)?;
    let mut recovered = recover_and_upgrade(&path, &mut journal)?;
    let history = HistoryReader::new(&path);
    let missed = history.missing(std::mem::take(&mut recovered.ended))?;
    let missed = missed.into_iter().map(|record| JournalWrite::Ended(Box::new(record)));
    // A misfit that the history has already stays one row.
    let misfits = JournalWrite::Misfits(std::mem::take(&mut recovered.misfits));
    // So does what a rank did with a GPU.
    let usage = std::mem::take(&mut recovered.usage).into_iter();
    let usage = usage.map(|record| JournalWrite::Usage(Box::new(record)));
    // And an archived part.
    let archived = std::mem::take(&mut recovered.archived).into_iter();
    let archived = archived.map(|part| JournalWrite::Archive(Box::new(part)));
    // And an entry of the feed.
    let told = std::mem::take(&mut recovered.told).into_iter().map(JournalWrite::Feed);
    // What counts in reports is counted once, and rests on the usage before it.
    let accounted = std::mem::take(&mut recovered.accounted).into_iter().map(JournalWrite::Account);
    let writes = missed.chain([misfits]).chain(usage).chain(archived).chain(told).chain(accounted);
    journal.commit(&writes.collect::<Vec<_>>())?;
    let ended = history.newest(MAX_TRAINING_JOBS)?;
    let (estimates, ended_runs) = (Estimates::learned_from(&ended), ended_runs(&ended));
    let past = PastObservations::read(&history, &recovered.head, solos)?;
    let (cluster, replayed) = (journal.cluster_id()?, recovered.replayed);
    tracing::info!(journal = %path.display(), cluster, replayed, "the journal was replayed");
    Ok(ReplayedJournal { cluster, recovered, journal, history, estimates, past, ended_runs })
}

/// Starts the actors; the driver has started when this returns.
async fn run(
    options: &HeadOptions,
    scheduling: Scheduling,
    replayed: ReplayedJournal,
    access: AccessStores,
    code: Arc<CodeStores>,
    listener: Listener,
    setup: HeadSetup,
) -> Result<RunningHead, HeadError> {
    let ReplayedJournal { cluster, recovered, journal, history, estimates, past, ended_runs } = replayed;
    let policy = scheduling.policy.with(|factory| remembering(factory, ended_runs));
    let (uses_interference, sensitivity) = (policy.uses_interference, Arc::clone(&policy.sensitivity));
    let scheduling = Scheduling { policy, ..scheduling };
    let (given, experience) = (options.clone(), past.experience);
    let (planner, trainer) = blocking(move || scheduling.start(&given, experience)).await?;
    let journal = JournalWriter::start(journal).map_err(HeadError::failed)?;
    let (watchers, updates) = (Watchers::default(), UpdateLog::default());
    let parts = DriverParts {
        clock: Clock::after(recovered.last),
        head: recovered.head,
        config: options.config.clone(),
        journal: journal.address.clone(),
        planner,
        uses_interference,
        sensitivity,
        trainer,
        learn_every: options.learn_every,
        estimates,
        memory_tracker: past.memory_tracker,
        watchers: watchers.clone(),
        updates: updates.clone(),
        snapshots: Snapshots::after(
            recovered.sequence,
            recovered.last,
            recovered.replayed,
            options.snapshot_every,
        ),
        history_retention: options.history_retention,
        report_retention: options.report_retention,
        limits: options.limits.clone(),
        applications: access.applications,
    };
    let system = ActorSystem::new();
    let driver = spawn_driver(&system, parts);
    // The reply proves that the driver has started, which fails where the journal cannot be written.
    let ready = driver.ask(|reply_to| Message::Query(Query::Known(Vec::new(), reply_to))).await;
    if ready.is_err() {
        let ended = system.shutdown(SHUTDOWN_GRACE).await;
        blocking(move || journal.close()).await?;
        ended.map_err(HeadError::failed)?;
        return Err(HeadError::ended());
    }
    let cleaner = CodeCleaner {
        stores: Arc::clone(&code),
        driver: driver.clone(),
        retention: options.config.retention,
    };
    system.spawn_once(ChildSpec::new("code", 1), cleaner);
    let session_context = SessionContext {
        driver,
        watchers,
        updates,
        history,
        feed: journal.feed.clone(),
        tokens: access.tokens,
        credentials: access.credentials,
        checkpoint_directory: options.checkpoints.directory_of_jobs(&cluster),
        checkpoint_limit: options.checkpoints.limit,
        memory: options.config.archive_after.min(options.config.retention),
        watch_limit: options.watch_limit,
        silence_limit: options.silence_limit,
        queries: UserLimiter::default(),
        changes: UserLimiter::default(),
        forwards: ForwardLimits::default(),
        answers: AnswerPacer::default(),
        joins: SharedRates::default(),
        refusal_lines: SharedRates::default(),
        code,
        application_questions: ApplicationQuestions::default(),
        limits: options.limits.clone(),
        private_data: options.private_data,
        user_token_lifetime: options.user_token_lifetime,
        setup,
    };
    let sessions = Sessions::new(listener, session_context);
    system.spawn_essential(ChildSpec::new("sessions", 1), sessions);
    let (stop, stopped) = oneshot::channel();
    let signal = async move { drop(stopped.await) };
    Ok(RunningHead { stop, actors: tokio::spawn(system.run_until(signal, SHUTDOWN_GRACE)), journal })
}

/// The driver is not restarted within the process: after its failure only a replay of the journal is safe.
fn spawn_driver(system: &ActorSystem, parts: DriverParts) -> Address<Message> {
    let spec = ChildSpec::new("driver", driver::CAPACITY).grace(SHUTDOWN_GRACE);
    system.spawn_essential(spec, Driver::new(parts))
}

fn actors_result(
    ended: Result<Result<(), ActorSystemError>, tokio::task::JoinError>,
) -> Result<(), HeadError> {
    ended.map_err(HeadError::failed)?.map_err(HeadError::failed)
}

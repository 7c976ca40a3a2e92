//! The jobs of an application that runs in one process: each attempt of one is a thread.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cohabit_application_core::{GangSpec, RunnerReport, RunnerShortage, RunnerState};
use cohabit_types::{ApplicationAccess, JobId, RankId};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;
use tokio::time::sleep;

use crate::runner;
use crate::surroundings::{EndRequest, Surroundings};

/// So many runners of tasks run beside each other, as on a node with so many cores.
const MOST_RUNNERS: usize = 4;

/// How long the application may go on after `main`: one with a detached actor never ends by itself.
const MAIN_PATIENCE: Duration = Duration::from_secs(5);

/// The job of `main`, which the thread of the test runs.
const MAIN: JobId = JobId::new(2);

/// The exit code of a thread that could not start, or that panicked.
const FAILED: i32 = 101;

/// Starts and ends threads as the head does processes.
#[derive(Clone)]
pub(crate) struct ThreadJobs(Arc<Shared>);

struct Shared {
    /// What the accesses of all members have in common.
    access: ApplicationAccess,
    state: Mutex<ThreadJobsState>,
    /// There are new reports.
    reported: Notify,
    /// A thread has ended.
    ended: Condvar,
    main_over: Notify,
}

#[derive(Default)]
struct ThreadJobsState {
    jobs: BTreeMap<JobId, ThreadJob>,
    reports: Vec<(JobId, RunnerReport)>,
}

struct ThreadJob {
    role: ThreadRole,
    restarts: u32,
    /// The threads of an attempt.
    ranks: u32,
    /// How many attempts have begun.
    attempts: u32,
    phase: ThreadPhase,
    is_cancelled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadRole {
    Main,
    Actor,
    Tasks,
}

enum ThreadPhase {
    Waiting,
    Runs {
        /// Of its threads that have not ended, by rank: each is told to end.
        threads: BTreeMap<u32, UnboundedSender<()>>,
        /// The code of the first that did not end with 0.
        code: i32,
    },
    Ended,
}

impl ThreadJobs {
    /// The jobs of an application whose coordinator has this access.
    pub(crate) fn new(access: ApplicationAccess) -> ThreadJobs {
        let mut state = ThreadJobsState::default();
        // Nobody tells the thread of the test to end.
        let (terminate, _word) = unbounded_channel();
        let phase = ThreadPhase::Runs { threads: BTreeMap::from([(0, terminate)]), code: 0 };
        state.jobs.insert(MAIN, ThreadJob { attempts: 1, phase, ..ThreadJob::new(ThreadRole::Main, 0, 1) });
        state.report(MAIN, RunnerState::Live);
        let (reported, ended, main_over) = (Notify::new(), Condvar::new(), Notify::new());
        ThreadJobs(Arc::new(Shared { access, state: Mutex::new(state), reported, ended, main_over }))
    }

    /// What the thread of `main` gets.
    ///
    /// # Errors
    /// If there is no folder for its checkpoints.
    pub(crate) fn main(&self) -> io::Result<(ApplicationAccess, Surroundings)> {
        Ok((self.access_of(MAIN.attempt(1).rank(0)), self.surroundings(MAIN)?))
    }

    /// `main` runs already.
    pub(crate) const fn submit_main(&self) -> JobId {
        MAIN
    }

    /// Starts the threads of actors.
    pub(crate) fn submit_gang(&self, gang: &GangSpec) -> JobId {
        self.submit(ThreadJob::new(ThreadRole::Actor, gang.restarts, gang.actors.len() as u32))
    }

    /// Starts a runner of tasks, as soon as few enough run.
    pub(crate) fn submit_tasks(&self) -> JobId {
        self.submit(ThreadJob::new(ThreadRole::Tasks, 0, 1))
    }

    /// Tells the threads of a job to end.
    pub(crate) fn cancel(&self, id: JobId) {
        let mut state = self.state();
        let Some(job) = state.jobs.get_mut(&id) else { return };
        job.is_cancelled = true;
        job.end_threads();
        match job.phase {
            ThreadPhase::Waiting => {
                job.phase = ThreadPhase::Ended;
                state.report(id, ended(runner::TERMINATED));
            }
            ThreadPhase::Runs { .. } | ThreadPhase::Ended => {}
        }
        self.0.reported.notify_one();
    }

    /// The thread of the test has run `main`.
    pub(crate) fn main_ended(&self, code: i32) {
        self.thread_ended(MAIN.attempt(1).rank(0), code);
        self.0.main_over.notify_one();
    }

    /// Waits until `main` has ended, and as long again as the application may take for its own end.
    pub(crate) async fn overdue(&self) {
        self.0.main_over.notified().await;
        sleep(MAIN_PATIENCE).await;
    }

    /// Waits for reports of jobs.
    pub(crate) async fn reports(&self) -> Vec<(JobId, RunnerReport)> {
        loop {
            let reports = std::mem::take(&mut self.state().reports);
            if !reports.is_empty() {
                return reports;
            }
            self.0.reported.notified().await;
        }
    }

    /// Tells all threads to end, and waits for them, but not longer than this.
    pub(crate) fn end(&self, patience: Duration) {
        let ids: Vec<JobId> = self.state().jobs.keys().copied().collect();
        ids.into_iter().for_each(|id| self.cancel(id));
        let runs = |state: &mut ThreadJobsState| state.jobs.values().any(|job| job.runs());
        // A thread whose code does not return ends with the program.
        let _waited = self.0.ended.wait_timeout_while(self.state(), patience, runs);
    }

    fn submit(&self, job: ThreadJob) -> JobId {
        let mut state = self.state();
        let (id, role) = (JobId::new(MAIN.number + state.jobs.len() as u64), job.role);
        state.jobs.insert(id, job);
        let why = format!("{MOST_RUNNERS} runners of tasks run");
        state.report(id, RunnerState::Waiting { why, shortage: Some(RunnerShortage::Host) });
        match role {
            ThreadRole::Main | ThreadRole::Actor => self.start(&mut state, id),
            ThreadRole::Tasks => self.start_runners(&mut state),
        }
        self.0.reported.notify_one();
        id
    }

    /// Starts runners of tasks that wait, in order, as far as there is room.
    fn start_runners(&self, state: &mut ThreadJobsState) {
        let runners = || state.jobs.iter().filter(|(_, job)| job.role == ThreadRole::Tasks);
        let room = MOST_RUNNERS.saturating_sub(runners().filter(|(_, job)| job.runs()).count());
        let waiting = runners().filter(|(_, job)| matches!(job.phase, ThreadPhase::Waiting));
        let next: Vec<JobId> = waiting.map(|(id, _)| *id).take(room).collect();
        next.into_iter().for_each(|id| self.start(state, id));
    }

    /// Starts the next attempt of a job.
    fn start(&self, state: &mut ThreadJobsState, id: JobId) {
        let Some(job) = state.jobs.get_mut(&id) else { return };
        job.attempts += 1;
        let (role, attempt, ranks) = (job.role, id.attempt(job.attempts), job.ranks);
        let channels = (0..ranks).map(|rank| {
            let (terminate, word) = unbounded_channel();
            ((rank, terminate), (rank, word))
        });
        let (threads, words): (BTreeMap<_, _>, Vec<_>) = channels.unzip();
        job.phase = ThreadPhase::Runs { threads, code: 0 };
        state.report(id, RunnerState::Live);
        let started = words.into_iter().try_for_each(|(rank, word)| {
            let (jobs, member, surroundings) = (self.clone(), attempt.rank(rank), self.surroundings(id)?);
            let run = move || {
                let access = jobs.access_of(member);
                let run_it =
                    AssertUnwindSafe(|| run_member(role, access, &surroundings, EndRequest::Word(word)));
                let code = catch_unwind(run_it).unwrap_or(Ok(FAILED));
                jobs.thread_ended(member, code.unwrap_or(FAILED));
            };
            let name = if ranks == 1 { format!("{role} {id}") } else { format!("{role} {id}/{rank}") };
            thread::Builder::new().name(name).spawn(run).map(drop)
        });
        if let Err(error) = started {
            let text = format!("cannot start a thread: {error}");
            if let Some(job) = state.jobs.get_mut(&id) {
                job.end_threads();
                job.phase = ThreadPhase::Ended;
            }
            state.report(id, RunnerState::Ended { code: FAILED, text });
        }
    }

    fn thread_ended(&self, member: RankId, code: i32) {
        let (mut state, id) = (self.state(), member.job());
        let Some(code) = state.jobs.get_mut(&id).and_then(|job| job.rank_ended(member.rank, code)) else {
            return;
        };
        let Some(job) = state.jobs.get_mut(&id) else { return };
        if code != 0 && !job.is_cancelled && job.attempts <= job.restarts {
            self.start(&mut state, id);
        } else {
            job.phase = ThreadPhase::Ended;
            state.report(id, ended(code));
        }
        self.start_runners(&mut state);
        drop(state);
        self.0.reported.notify_one();
        self.0.ended.notify_all();
    }

    fn access_of(&self, member: RankId) -> ApplicationAccess {
        ApplicationAccess { member, ..self.0.access.clone() }
    }

    fn surroundings(&self, id: JobId) -> io::Result<Surroundings> {
        let checkpoints: PathBuf = self.0.access.directory.join(format!("checkpoints-{id}"));
        fs::create_dir_all(&checkpoints)?;
        Ok(Surroundings::Thread { checkpoints })
    }

    fn state(&self) -> MutexGuard<'_, ThreadJobsState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ThreadJobsState {
    fn report(&mut self, id: JobId, state: RunnerState) {
        let attempts = self.jobs.get(&id).map_or(0, |job| job.attempts - u32::from(job.runs()));
        self.reports.push((id, RunnerReport { ended_attempts: attempts, state }));
    }
}

impl ThreadJob {
    const fn new(role: ThreadRole, restarts: u32, ranks: u32) -> ThreadJob {
        ThreadJob { role, restarts, ranks, attempts: 0, phase: ThreadPhase::Waiting, is_cancelled: false }
    }

    const fn runs(&self) -> bool {
        matches!(self.phase, ThreadPhase::Runs { .. })
    }

    /// Tells all of its threads to end.
    fn end_threads(&self) {
        if let ThreadPhase::Runs { threads, code: _ } = &self.phase {
            // Some may have ended.
            threads.values().for_each(|terminate| _ = terminate.send(()));
        }
    }

    /// A thread has ended. If it failed, the others are told to end; the code of all, when all have ended.
    fn rank_ended(&mut self, rank: u32, ended: i32) -> Option<i32> {
        let ThreadPhase::Runs { threads, code } = &mut self.phase else { return None };
        threads.remove(&rank);
        if ended != 0 && *code == 0 {
            *code = ended;
        }
        let (is_last, code) = (threads.is_empty(), *code);
        if ended != 0 {
            self.end_threads();
        }
        is_last.then_some(code)
    }
}

impl fmt::Display for ThreadRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ThreadRole::Main => "main",
            ThreadRole::Actor => "actor",
            ThreadRole::Tasks => "tasks",
        })
    }
}

fn ended(code: i32) -> RunnerState {
    RunnerState::Ended { code, text: format!("its thread ended with {code}") }
}

/// Runs a future, and what it spawns, on this thread.
///
/// # Errors
/// If the system has no runtime for it.
pub(super) fn on_this_thread<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let returned = LocalSet::new().block_on(&runtime, future);
    // What blocks may go on for ever.
    runtime.shutdown_background();
    Ok(returned)
}

fn run_member(
    role: ThreadRole,
    access: ApplicationAccess,
    surroundings: &Surroundings,
    terminate: EndRequest,
) -> io::Result<i32> {
    on_this_thread(async {
        match role {
            ThreadRole::Main | ThreadRole::Actor => runner::run_actor(access, surroundings, terminate).await,
            ThreadRole::Tasks => runner::run_tasks(access, surroundings, terminate).await,
        }
    })
}

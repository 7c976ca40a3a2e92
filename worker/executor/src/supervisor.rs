//! Supervises a rank from its start until no process of it is left, in one event loop.
//!
//! The rank has ended when its first process has ended *and* all others are gone: processes that remain are
//! sent SIGTERM, and SIGKILL if they do not end. When the rank was being stopped, they keep the rest of its
//! grace, because a shell dies at once from the SIGTERM on which its children write their checkpoints.

use std::future::pending;
use std::time::Duration;

use cohabit_host::clock::now;
use cohabit_host::messages::ExecutorCommand;
use cohabit_host::progress::{ProgressFile, ProgressTracker, SeriesWriter};
use cohabit_host::rank_directory::Flush;
use cohabit_types::{Outcome, Progress, Span, StopReason, Time};
use cohabit_worker_core::{Lease, OrphanTimer, SignalTarget, StopAction, StopSequence, Stopping};
use nix::sys::signal::Signal;
use tokio::signal::unix;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::client_removal::RemovalState;
use crate::error_log::log_error;
use crate::exec::ExecStarter;
use crate::output::{Output, RemainingOutput};
use crate::process_tree::ProcessTree;
use crate::socket::{DaemonMessage, POLL_INTERVAL, RankStatus};
use crate::watchdog::Watchdog;

/// How long processes that remain after the end of a rank that was not being stopped may take to end.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// The pause between two rounds of SIGKILL.
const KILL_INTERVAL: Duration = Duration::from_millis(100);

/// A running rank.
pub(crate) struct RankSupervisor<'a> {
    pub(crate) process_tree: ProcessTree,
    pub(crate) has_terminal: bool,
    pub(crate) execs: ExecStarter<'a>,
    pub(crate) output: Output,
    pub(crate) progress_file: ProgressFile,
    pub(crate) tracker: ProgressTracker,
    pub(crate) series: SeriesWriter,
    pub(crate) status: watch::Sender<RankStatus>,
    pub(crate) orphan_timer: OrphanTimer,
    pub(crate) watchdog: &'a mut Watchdog,
    /// The time from SIGTERM to SIGKILL that the job asked for.
    pub(crate) grace: Span,
    /// The time limit and the stop, as far as the daemon has told.
    pub(crate) stop: StopSequence,
    pub(crate) termination: Termination,
    /// Comes before SIGKILL if the rank is a client of an MPS server.
    pub(crate) removal: RemovalState,
}

/// How far the rank is being ended by signals.
#[derive(Debug, Default)]
pub(crate) struct Termination {
    /// When the process group was last sent SIGTERM.
    terminated_at: Option<Instant>,
    /// When everything is sent SIGKILL.
    kill_at: Option<Instant>,
    cause: ExitCause,
}

/// Why the first process ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ExitCause {
    #[default]
    Itself,
    /// It had been sent SIGTERM or SIGKILL.
    Signalled,
}

/// How the rank ended.
pub(crate) struct RankResult<'a> {
    pub(crate) outcome: Outcome,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) progress: Option<Progress>,
    pub(crate) at: Time,
    /// `Now` if no daemon that reaches the head is connected and could report the outcome.
    pub(crate) flush: Flush,
    pub(crate) output: RemainingOutput,
    pub(crate) execs: ExecStarter<'a>,
}

impl<'a> RankSupervisor<'a> {
    /// Returns when no process of the rank is left.
    pub(crate) async fn run(
        mut self,
        deaths: &mut unix::Signal,
        mut messages: mpsc::Receiver<DaemonMessage>,
    ) -> RankResult<'a> {
        let mut poll = interval_at(Instant::now() + POLL_INTERVAL, POLL_INTERVAL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let outcome = loop {
            self.instruct_watchdog();
            self.reap().await;
            if let Some(outcome) = self.process_tree.outcome().filter(|_| self.process_tree.is_gone()) {
                break outcome.clone();
            }
            tokio::select! {
                // Messages come before timers.
                biased;
                _ = deaths.recv() => {}
                Some(message) = messages.recv() => self.handle(message).await,
                () = at(self.orphan_timer.deadline().map(instant)) => self.handle_orphan_timer().await,
                () = at(self.overdue_step().map(instant)) => self.take_overdue_step().await,
                () = self.removal.finished() => self.termination.kill_at = Some(Instant::now()),
                () = at(self.termination.kill_at) => {}
                () = self.execs.rung() => self.start_execs().await,
                _ = poll.tick() => self.poll_progress(),
            }
            self.kill_if_due().await;
        };
        self.finish(outcome).await
    }

    /// Starts further processes, while the rank itself runs.
    async fn start_execs(&mut self) {
        for (directory, request) in self.execs.requests().await {
            if self.process_tree.outcome().is_none() {
                self.execs.start(directory, request, &mut self.process_tree);
            }
        }
    }

    fn instruct_watchdog(&mut self) {
        if let Some(at) = self.orphan_timer.kill_at(self.grace) {
            self.watchdog.kill_at(at);
        }
    }

    async fn reap(&mut self) {
        let was_running = self.process_tree.outcome().is_none();
        self.process_tree.reap();
        if was_running && self.process_tree.outcome().is_some() {
            if self.termination.terminated_at.is_some() || self.termination.kill_at.is_some() {
                self.termination.cause = ExitCause::Signalled;
            }
            if !self.process_tree.is_gone() {
                self.end_leftovers().await;
            }
        }
    }

    /// The first process has ended, so the others must end. Those that got SIGTERM before do not get it
    /// twice.
    async fn end_leftovers(&mut self) {
        let soon = Instant::now() + LEFTOVER_GRACE;
        let kill_at = match self.termination.terminated_at {
            None => {
                self.process_tree.signal_everything(Signal::SIGTERM).await;
                soon
            }
            Some(terminated_at) => {
                self.process_tree.signal_strays(Signal::SIGTERM).await;
                soon.max(terminated_at + self.grace.into())
            }
        };
        let earlier = self.termination.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at));
        self.termination.kill_at = Some(earlier);
    }

    async fn handle(&mut self, message: DaemonMessage) {
        match message {
            DaemonMessage::Disconnected => self.orphan_timer.set(now(), Lease::Orphaned),
            DaemonMessage::Command(ExecutorCommand::Lease(lease)) => self.orphan_timer.set(now(), lease),
            DaemonMessage::Command(ExecutorCommand::LeaseAt(lease, at)) => {
                self.orphan_timer.set(at.min(now()), lease)
            }
            DaemonMessage::Command(ExecutorCommand::Stopping(stopping)) => self.set_stopping(stopping),
            DaemonMessage::Command(ExecutorCommand::Signal(signal, target)) => {
                self.send_signal(signal, target).await
            }
        }
    }

    /// When this process takes the next step of the stop, or stops the rank at its time limit, unless a
    /// daemon does.
    fn overdue_step(&self) -> Option<Time> {
        let is_alive = self.process_tree.outcome().is_none();
        self.stop.overdue_at().filter(|_| is_alive)
    }

    /// No daemon has taken it: it is dead, or hangs.
    async fn take_overdue_step(&mut self) {
        self.reap().await;
        if self.overdue_step().is_none_or(|at| now() < at) {
            return;
        }
        let actions = self.stop.advance(now());
        self.stop.stopping().into_iter().for_each(|stopping| self.keep_stopping(stopping));
        for action in actions {
            match action {
                StopAction::Signal(signal, target) => self.send_signal(signal, target).await,
                StopAction::Kill => self.termination.kill_at = Some(Instant::now()),
            }
        }
    }

    fn set_stopping(&mut self, stopping: Stopping) {
        self.stop.note(stopping);
        self.keep_stopping(stopping);
    }

    /// For the next daemon and for the outcome. The connected daemon knows it already, so it is not notified.
    fn keep_stopping(&self, stopping: Stopping) {
        self.status.send_if_modified(|status| {
            status.stopping = Some(stopping);
            false
        });
    }

    async fn send_signal(&mut self, signal: cohabit_types::Signal, target: SignalTarget) {
        let Ok(signal) = Signal::try_from(signal.0) else {
            return log_error(&format!("{signal} cannot be sent"));
        };
        match (target, signal) {
            (SignalTarget::Everything, Signal::SIGKILL) => self.termination.kill_at = Some(Instant::now()),
            (SignalTarget::Everything, _) => self.process_tree.signal_everything(signal).await,
            (SignalTarget::Group, _) => self.signal_group(signal).await,
        }
    }

    async fn signal_group(&mut self, signal: Signal) {
        if signal == Signal::SIGTERM {
            self.termination.terminated_at = Some(Instant::now());
        }
        self.process_tree.signal_group(signal).await;
        // Shells at a terminal ignore SIGTERM. They end, and their jobs, as when a person closes the window.
        if signal == Signal::SIGTERM && self.has_terminal && self.process_tree.leader_ignores(signal).await {
            self.process_tree.signal_group(Signal::SIGHUP).await;
        }
    }

    /// Stops the rank after too long without contact to the head. SIGCONT lets suspended processes handle the
    /// SIGTERM. If a daemon had begun to stop the rank, its reason stays.
    ///
    /// A rank whose end this process has not noticed, because it was itself suspended, has ended by itself.
    /// If its grace has passed meanwhile, another attempt may run: SIGKILL follows at once.
    async fn handle_orphan_timer(&mut self) {
        self.reap().await;
        if let Some(expired_at) = self.orphan_timer.expired_at(now())
            && self.process_tree.outcome().is_none()
        {
            let stopping = self.stop.begin_orphaned(expired_at);
            self.keep_stopping(stopping);
            self.signal_group(Signal::SIGTERM).await;
            self.signal_group(Signal::SIGCONT).await;
            self.termination.kill_at = Some(instant(stopping.due_at));
        }
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.status.borrow().stopping.map(|stopping| stopping.why)
    }

    /// MPS clients are removed from their server first. SIGKILL is repeated, because a process may have
    /// started another one just before it was killed.
    async fn kill_if_due(&mut self) {
        let now = Instant::now();
        if self.termination.kill_at.is_none_or(|kill_at| now < kill_at) {
            return;
        }
        let pause = match self.removal.begin(&self.process_tree).await {
            Some(timeout) => timeout,
            None => {
                self.process_tree.signal_everything(Signal::SIGKILL).await;
                KILL_INTERVAL
            }
        };
        self.termination.kill_at = Some(now + pause);
    }

    fn poll_progress(&mut self) {
        if let Some(new) = self.progress_file.read_new() {
            self.tracker.line(now(), new.entry);
            self.series.add(now(), new.reports);
        }
        if let Some(bar) = self.output.take_bar() {
            self.tracker.bar(now(), bar);
        }
        let progress = self.tracker.progress();
        self.status.send_if_modified(|status| {
            let changed = status.progress.as_ref() != progress;
            status.progress = progress.cloned();
            changed
        });
    }

    async fn finish(mut self, outcome: Outcome) -> RankResult<'a> {
        let at = now();
        let output = self.output.drain().await;
        self.poll_progress();
        self.watchdog.rest();
        let (outcome, stopped) = (self.explain(outcome), self.stop_reason());
        let flush = if self.orphan_timer.is_running() { Flush::Now } else { Flush::Later };
        let progress = self.tracker.progress().cloned();
        RankResult { outcome, stopped, progress, at, flush, output, execs: self.execs }
    }

    /// A failure that no signal of ours caused may be explained by what the rank printed.
    fn explain(&self, outcome: Outcome) -> Outcome {
        if outcome.succeeded() || self.termination.cause == ExitCause::Signalled {
            return outcome;
        }
        let code = outcome.shell_code();
        let message = self.output.out_of_gpu_memory();
        message.map_or(outcome, |message| Outcome::OutOfGpuMemory { code, message })
    }
}

/// The same time by the clock of timers; now, if it has passed.
fn instant(time: Time) -> Instant {
    Instant::now() + time.since(now()).into()
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

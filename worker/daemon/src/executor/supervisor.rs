//! Holds a rank from its start until nothing of it is left: one loop over all that can happen meanwhile.
//!
//! The rank has ended when its first process has ended *and* every other one is gone: those that remain are
//! asked to end, and killed when they do not. Programs that were being stopped keep the rest of their grace
//! for that, because a shell dies at once of the SIGTERM by which its children write their checkpoints.

use std::future::pending;
use std::time::Duration;

use cohabit_types::{Outcome, Progress, Span, StopReason, Time};
use cohabit_worker_core::{Lease, SignalTarget, StopStep, Stopping};
use nix::sys::signal::Signal;
use tokio::signal::unix;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::lease::OrphanTimer;
use super::log_error;
use super::output::{Output, RemainingOutput};
use super::process_tree::ProcessTree;
use super::removal::Removal;
use super::socket::{DaemonMessage, RankStatus};
use crate::clock::now;
use crate::progress::{ProgressFile, ProgressTracker};
use crate::rank_folder::Flush;
use crate::wire::ExecutorCommand;

/// What remains after the end of a rank that nobody stopped has this long to end.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// How often progress is looked for, and told; also how often what should be gone is looked for.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Between two rounds of killing.
const KILL_INTERVAL: Duration = Duration::from_millis(100);

/// A rank that runs.
pub(crate) struct RankSupervisor {
    pub(crate) process_tree: ProcessTree,
    pub(crate) output: Output,
    pub(crate) progress_file: ProgressFile,
    pub(crate) tracker: ProgressTracker,
    pub(crate) status: watch::Sender<RankStatus>,
    pub(crate) orphan_timer: OrphanTimer,
    /// From SIGTERM to SIGKILL, by the job's own stop sequence.
    pub(crate) grace: Span,
    pub(crate) force: Termination,
    /// What comes before killing, if the rank is a client of an MPS server.
    pub(crate) removal: Removal,
}

/// How far the rank is being made to end.
#[derive(Debug, Default)]
pub(crate) struct Termination {
    /// When the group was last asked to end.
    asked_at: Option<Instant>,
    /// When everything is killed.
    kill_at: Option<Instant>,
    end: ExitCause,
}

/// Whether the first process had been asked to end, or was killed, when it ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ExitCause {
    #[default]
    OfItself,
    Asked,
}

/// How the rank ended.
pub(crate) struct RankResult {
    pub(crate) outcome: Outcome,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) progress: Option<Progress>,
    pub(crate) at: Time,
    /// When that has to be safe from a power cut: at once, if nobody is there to tell the head of it.
    pub(crate) flush: Flush,
    pub(crate) output: RemainingOutput,
}

impl RankSupervisor {
    /// Returns when nothing of the rank is left.
    pub(crate) async fn hold(
        mut self,
        deaths: &mut unix::Signal,
        mut heard: mpsc::Receiver<DaemonMessage>,
    ) -> RankResult {
        let mut look = interval_at(Instant::now() + POLL_INTERVAL, POLL_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let outcome = loop {
            self.reap();
            if let Some(outcome) = self.process_tree.outcome().filter(|_| self.process_tree.is_gone()) {
                break outcome.clone();
            }
            tokio::select! {
                // What was heard counts before what the clock says.
                biased;
                _ = deaths.recv() => {}
                Some(heard) = heard.recv() => self.hear(heard),
                () = at(self.orphan_timer.deadline()) => self.handle_orphan_timer(),
                () = self.removal.ended() => self.force.kill_at = Some(Instant::now()),
                () = at(self.force.kill_at) => {}
                _ = look.tick() => self.look(),
            }
            self.kill_if_due();
        };
        self.end(outcome).await
    }

    fn reap(&mut self) {
        let ran = self.process_tree.outcome().is_none();
        self.process_tree.reap();
        if ran && self.process_tree.outcome().is_some() {
            if self.force.asked_at.is_some() || self.force.kill_at.is_some() {
                self.force.end = ExitCause::Asked;
            }
            if !self.process_tree.is_gone() {
                self.end_leftovers();
            }
        }
    }

    /// The first process has ended: the others have to. Those that were asked before are not asked twice.
    fn end_leftovers(&mut self) {
        let soon = Instant::now() + LEFTOVER_GRACE;
        let kill_at = match self.force.asked_at {
            None => {
                self.process_tree.signal_everything(Signal::SIGTERM);
                soon
            }
            Some(asked_at) => {
                self.process_tree.signal_strays(Signal::SIGTERM);
                soon.max(asked_at + self.grace.into())
            }
        };
        self.force.kill_at = Some(self.force.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at)));
    }

    fn hear(&mut self, heard: DaemonMessage) {
        match heard {
            DaemonMessage::Disconnected => self.orphan_timer.set(Instant::now(), Lease::Orphaned),
            DaemonMessage::ExecutorCommand(ExecutorCommand::Lease(lease)) => {
                self.orphan_timer.set(Instant::now(), lease)
            }
            DaemonMessage::ExecutorCommand(ExecutorCommand::Stopping(stopping)) => self.keep(stopping),
            DaemonMessage::ExecutorCommand(ExecutorCommand::Signal(signal, target)) => {
                self.send_signal(signal, target)
            }
        }
    }

    /// For the next daemon, and for the end. Who is connected knows it.
    fn keep(&self, stopping: Stopping) {
        self.status.send_if_modified(|status| {
            status.stopping = Some(stopping);
            false
        });
    }

    fn send_signal(&mut self, signal: cohabit_types::Signal, target: SignalTarget) {
        let Ok(signal) = Signal::try_from(signal.0) else {
            return log_error(&format!("{signal} cannot be sent"));
        };
        match (target, signal) {
            (SignalTarget::Everything, Signal::SIGKILL) => self.force.kill_at = Some(Instant::now()),
            (SignalTarget::Everything, _) => self.process_tree.signal_everything(signal),
            (SignalTarget::Group, _) => self.signal_group(signal),
        }
    }

    fn signal_group(&mut self, signal: Signal) {
        if signal == Signal::SIGTERM {
            self.force.asked_at = Some(Instant::now());
        }
        self.process_tree.signal_group(signal);
    }

    /// When nobody who knows the head has spoken for too long, the rank is stopped. A stopped process goes
    /// on, or it could not react. A daemon that had begun to stop it had its reason before.
    fn handle_orphan_timer(&mut self) {
        if self.orphan_timer.has_expired(Instant::now()) && self.process_tree.outcome().is_none() {
            let why = self.stop_reason().unwrap_or(StopReason::Orphaned);
            self.keep(Stopping { why, next: StopStep::Kill, due_at: now() + self.grace });
            self.signal_group(Signal::SIGTERM);
            self.signal_group(Signal::SIGCONT);
            self.force.kill_at = Some(Instant::now() + self.grace.into());
        }
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.status.borrow().stopping.map(|stopping| stopping.why)
    }

    /// A client leaves its MPS server first. Once begun, killing goes on: what is killed may just have
    /// started another.
    fn kill_if_due(&mut self) {
        let now = Instant::now();
        if self.force.kill_at.is_none_or(|kill_at| now < kill_at) {
            return;
        }
        let wait = self.removal.begin(&self.process_tree).unwrap_or_else(|| {
            self.process_tree.signal_everything(Signal::SIGKILL);
            KILL_INTERVAL
        });
        self.force.kill_at = Some(now + wait);
    }

    fn look(&mut self) {
        if let Some(line) = self.progress_file.look() {
            self.tracker.line(now(), line);
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

    async fn end(mut self, outcome: Outcome) -> RankResult {
        let at = now();
        let output = self.output.drained().await;
        self.look();
        let (outcome, stopped) = (self.explained(outcome), self.stop_reason());
        let flush = if self.orphan_timer.runs() { Flush::Now } else { Flush::Later };
        RankResult { outcome, stopped, progress: self.tracker.progress().cloned(), at, flush, output }
    }

    /// A bad end of which nobody else was the cause may have one that the rank itself has told.
    fn explained(&self, outcome: Outcome) -> Outcome {
        if outcome.succeeded() || self.force.end == ExitCause::Asked {
            return outcome;
        }
        let code = outcome.shell_code();
        let said = self.output.out_of_gpu_memory();
        said.map_or(outcome, |said| Outcome::OutOfGpuMemory { code, said })
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

//! Holds a rank from its start until nothing of it is left: one loop over all that can happen meanwhile.
//!
//! The rank has ended when its first process has ended *and* every other one is gone: those that remain are
//! asked to end, and killed when they do not. Programs that were being stopped keep the rest of their grace
//! for that, because a shell dies at once of the SIGTERM by which its children write their checkpoints.

use std::future::pending;
use std::time::Duration;

use cohabit_types::{Outcome, Progress, Span, StopReason, Time};
use cohabit_worker_core::{Lease, StopStep, Stopping, Target};
use nix::sys::signal::Signal;
use tokio::signal::unix;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::complain;
use super::family::Family;
use super::lease::OrphanClock;
use super::output::{Output, Rest};
use super::removal::Removal;
use super::socket::{Heard, Status};
use crate::clock::now;
use crate::progress::{ProgressFile, Tracker};
use crate::rank_folder::Flush;
use crate::wire::Command;

/// What remains after the end of a rank that nobody stopped has this long to end.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

/// How often progress is looked for, and told; also how often what should be gone is looked for.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// Between two rounds of killing.
const KILL_AGAIN: Duration = Duration::from_millis(100);

/// A rank that runs.
pub(crate) struct Holder {
    pub(crate) family: Family,
    pub(crate) output: Output,
    pub(crate) progress_file: ProgressFile,
    pub(crate) tracker: Tracker,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) orphan_clock: OrphanClock,
    /// From SIGTERM to SIGKILL, by the job's own stop sequence.
    pub(crate) grace: Span,
    pub(crate) force: Force,
    /// What comes before killing, if the rank is a client of an MPS server.
    pub(crate) removal: Removal,
}

/// How far the rank is being made to end.
#[derive(Debug, Default)]
pub(crate) struct Force {
    /// When the group was last asked to end.
    asked_at: Option<Instant>,
    /// When everything is killed.
    kill_at: Option<Instant>,
    end: End,
}

/// Whether the first process had been asked to end, or was killed, when it ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    #[default]
    OfItself,
    Asked,
}

/// How the rank ended.
pub(crate) struct Over {
    pub(crate) outcome: Outcome,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) progress: Option<Progress>,
    pub(crate) at: Time,
    /// When that has to be safe from a power cut: at once, if nobody is there to tell the head of it.
    pub(crate) flush: Flush,
    pub(crate) output: Rest,
}

impl Holder {
    /// Returns when nothing of the rank is left.
    pub(crate) async fn hold(mut self, deaths: &mut unix::Signal, mut heard: mpsc::Receiver<Heard>) -> Over {
        let mut look = interval_at(Instant::now() + LOOK, LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let outcome = loop {
            self.reap();
            if let Some(outcome) = self.family.outcome().filter(|_| self.family.is_gone()) {
                break outcome.clone();
            }
            tokio::select! {
                // What was heard counts before what the clock says.
                biased;
                _ = deaths.recv() => {}
                Some(heard) = heard.recv() => self.hear(heard),
                () = at(self.orphan_clock.rings_at()) => self.clock_rang(),
                () = self.removal.ended() => self.force.kill_at = Some(Instant::now()),
                () = at(self.force.kill_at) => {}
                _ = look.tick() => self.look(),
            }
            self.kill_if_due();
        };
        self.end(outcome).await
    }

    fn reap(&mut self) {
        let ran = self.family.outcome().is_none();
        self.family.reap();
        if ran && self.family.outcome().is_some() {
            if self.force.asked_at.is_some() || self.force.kill_at.is_some() {
                self.force.end = End::Asked;
            }
            if !self.family.is_gone() {
                self.clear_up();
            }
        }
    }

    /// The first process has ended: the others have to. Those that were asked before are not asked twice.
    fn clear_up(&mut self) {
        let soon = Instant::now() + LEFTOVER_GRACE;
        let kill_at = match self.force.asked_at {
            None => {
                self.family.signal_everything(Signal::SIGTERM);
                soon
            }
            Some(asked_at) => {
                self.family.signal_strays(Signal::SIGTERM);
                soon.max(asked_at + self.grace.into())
            }
        };
        self.force.kill_at = Some(self.force.kill_at.map_or(kill_at, |earlier| earlier.min(kill_at)));
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Disconnected => self.orphan_clock.set(Instant::now(), Lease::Orphaned),
            Heard::Command(Command::Lease(lease)) => self.orphan_clock.set(Instant::now(), lease),
            Heard::Command(Command::Stopping(stopping)) => self.keep(stopping),
            Heard::Command(Command::Signal(signal, target)) => self.pass_on(signal, target),
        }
    }

    /// For the next daemon, and for the end. Who is connected knows it.
    fn keep(&self, stopping: Stopping) {
        self.status.send_if_modified(|status| {
            status.stopping = Some(stopping);
            false
        });
    }

    fn pass_on(&mut self, signal: cohabit_types::Signal, target: Target) {
        let Ok(signal) = Signal::try_from(signal.0) else {
            return complain(&format!("{signal} cannot be sent"));
        };
        match (target, signal) {
            (Target::Everything, Signal::SIGKILL) => self.force.kill_at = Some(Instant::now()),
            (Target::Everything, _) => self.family.signal_everything(signal),
            (Target::Group, _) => self.signal_group(signal),
        }
    }

    fn signal_group(&mut self, signal: Signal) {
        if signal == Signal::SIGTERM {
            self.force.asked_at = Some(Instant::now());
        }
        self.family.signal_group(signal);
    }

    /// When nobody who knows the head has spoken for too long, the rank is stopped. A stopped process goes
    /// on, or it could not react. A daemon that had begun to stop it had its reason before.
    fn clock_rang(&mut self) {
        if self.orphan_clock.has_run_out(Instant::now()) && self.family.outcome().is_none() {
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
        let wait = self.removal.begin(&self.family).unwrap_or_else(|| {
            self.family.signal_everything(Signal::SIGKILL);
            KILL_AGAIN
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

    async fn end(mut self, outcome: Outcome) -> Over {
        let at = now();
        let output = self.output.drained().await;
        self.look();
        let (outcome, stopped) = (self.explained(outcome), self.stop_reason());
        let flush = if self.orphan_clock.runs() { Flush::Now } else { Flush::Later };
        Over { outcome, stopped, progress: self.tracker.progress().cloned(), at, flush, output }
    }

    /// A bad end of which nobody else was the cause may have one that the rank itself has told.
    fn explained(&self, outcome: Outcome) -> Outcome {
        if outcome.succeeded() || self.force.end == End::Asked {
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

//! Runs one set on the GPU: its members start together, warm up, are measured while all of them run, and are
//! stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use cohabit_gpu::GpuProcess;
use cohabit_types::{Bytes, Outcome};

use crate::error::ProfileError;
use crate::gpu::TargetGpu;
use crate::observer::TrialStage;
use crate::rates::{Rate, RateResult, StepMarks, TrialTiming, measure_rates};
use crate::sharing_setup::SharingSetup;
use crate::usage::{SetUsage, UsageSample, usage};
use crate::workload::ProfileWorkload;
use crate::workload_process::{self, WorkloadProcess, belongs};
use cohabit_host::files::{FileContext, create_directory};

/// How long members may take to their first step: interpreters load, kernels are compiled.
const FIRST_STEP_TIMEOUT: Duration = Duration::from_secs(300);

/// The time between two polls of the members' steps.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The time between two samples of the GPU.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);

/// What a set needs to run.
pub(super) struct Trial<'a> {
    pub(super) gpu: &'a TargetGpu,
    pub(super) access: &'a SharingSetup<'a>,
    pub(super) pacing: TrialTiming,
    /// The directory for the files of the members.
    pub(super) folder: &'a Path,
    pub(super) until: StopConditions<'a>,
}

/// What stops a set early.
#[derive(Clone, Copy)]
pub(super) struct StopConditions<'a> {
    /// Set when the user interrupts the run.
    pub(super) interrupted: &'a AtomicBool,
    /// The end of the command's time.
    pub(super) deadline: Option<Instant>,
}

/// Why a command ends before it has measured everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyStop {
    /// The user interrupted it.
    Interrupted,
    /// Its time has ended.
    TimeOver,
}

/// The result of a set.
#[derive(Debug)]
pub(super) enum TrialResult {
    Measurement(Measurement),
    /// It cannot run on this GPU: why.
    Infeasible(String),
    /// It could not be measured: why.
    NotMeasured(String),
    Stopped(EarlyStop),
}

/// The measurements of a set that ran.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) rates: Vec<Rate>,
    pub(super) usage: SetUsage,
}

impl StopConditions<'_> {
    pub(super) fn stopped(&self) -> Option<EarlyStop> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Some(EarlyStop::Interrupted);
        }
        self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| EarlyStop::TimeOver)
    }
}

impl Trial<'_> {
    /// Runs these workloads as one set.
    pub(super) fn run(
        &self,
        workloads: &[&ProfileWorkload],
        tell: &mut dyn FnMut(TrialStage),
    ) -> Result<TrialResult, ProfileError> {
        self.remove_directory()?;
        create_directory(self.folder)?;
        tell(TrialStage::Starting);
        let mut members = Vec::new();
        let verdict = match self.start(workloads, &mut members) {
            Ok(()) => self.watch(&mut members, tell),
            Err(why) => Ok(TrialResult::NotMeasured(why)),
        };
        workload_process::stop(members, self.access.removal().as_ref())?;
        self.remove_directory()?;
        verdict
    }

    /// Starts all members; an error names the one that could not be started.
    fn start(
        &self,
        workloads: &[&ProfileWorkload],
        members: &mut Vec<WorkloadProcess>,
    ) -> Result<(), String> {
        for (number, workload) in workloads.iter().enumerate() {
            let started =
                WorkloadProcess::start(workload, self.folder, number, &self.access.environment(workload));
            members
                .push(started.map_err(|error| format!("{} could not be started: {error}", workload.name))?);
        }
        Ok(())
    }

    fn remove_directory(&self) -> Result<(), ProfileError> {
        if self.folder.exists() {
            fs::remove_dir_all(self.folder).at("remove the directory", self.folder)?;
        }
        Ok(())
    }

    /// Samples the GPU in a thread of its own, so that a slow driver does not distort the rates.
    fn watch(
        &self,
        members: &mut [WorkloadProcess],
        tell: &mut dyn FnMut(TrialStage),
    ) -> Result<TrialResult, ProfileError> {
        let begin = Instant::now();
        let marks: Vec<PathBuf> = members.iter().map(WorkloadProcess::mark).collect();
        let (over, is_over) = channel::<()>();
        let (sender, samples) = channel();
        thread::scope(|scope| {
            scope.spawn(move || self.sample(begin, &marks, &is_over, &sender));
            let verdict = self.follow(begin, members, &samples, tell);
            drop(over);
            verdict
        })
    }

    fn sample(&self, begin: Instant, marks: &[PathBuf], is_over: &Receiver<()>, to: &Sender<SampleResult>) {
        let mut proof = ClientCheck::Unknown;
        loop {
            proof = proof.repeat(self.access, marks);
            let sampled = self.gpu.scan().map(|look| UsageSample {
                at: begin.elapsed(),
                reading: look.reading,
                members: marks.iter().map(|mark| memory_of(mark, &look.processes)).collect(),
            });
            let failed = sampled.is_err();
            if to.send(sampled.map(|sample| (sample, proof))).is_err() || failed {
                return;
            }
            if is_over.recv_timeout(SAMPLE_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn follow(
        &self,
        begin: Instant,
        members: &mut [WorkloadProcess],
        samples: &Receiver<SampleResult>,
        tell: &mut dyn FnMut(TrialStage),
    ) -> Result<TrialResult, ProfileError> {
        let mut seen: Vec<UsageSample> = Vec::new();
        let mut proof = ClientCheck::Unknown;
        loop {
            let now = begin.elapsed();
            for sampled in samples.try_iter() {
                let (sample, latest) = sampled?;
                seen.push(sample);
                proof = latest;
            }
            if let Some(stop) = self.until.stopped() {
                return Ok(TrialResult::Stopped(stop));
            }
            if let Some(verdict) = poll_members(members, now)? {
                return Ok(verdict);
            }
            match self.measuring_from(members) {
                None if now > FIRST_STEP_TIMEOUT => return Ok(TrialResult::NotMeasured(idle_words(members))),
                None => {}
                Some(from) if now < from => tell(TrialStage::WarmingUp),
                Some(from) => {
                    tell(TrialStage::Measuring);
                    if let Some(verdict) = self.verdict(members, from, now, &seen, proof) {
                        return Ok(verdict);
                    }
                }
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// When measuring begins: after the warm-up of all members.
    fn measuring_from(&self, members: &[WorkloadProcess]) -> Option<Duration> {
        let begun: Option<Vec<Duration>> = members.iter().map(|member| member.pace.begun()).collect();
        begun?.into_iter().max().map(|last| last + self.pacing.warm_up)
    }

    fn verdict(
        &self,
        members: &[WorkloadProcess],
        from: Duration,
        now: Duration,
        samples: &[UsageSample],
        proof: ClientCheck,
    ) -> Option<TrialResult> {
        let paces: Vec<&StepMarks> = members.iter().map(|member| &member.pace).collect();
        match measure_rates(&paces, from, now, self.pacing.steady) {
            RateResult::Wait => None,
            RateResult::Stalled(member) => {
                let name = &members[member].name;
                Some(TrialResult::NotMeasured(format!(
                    "{name} made fewer than two steps while it was measured"
                )))
            }
            RateResult::Rates(rates) => Some(match proof {
                ClientCheck::Passed => {
                    let usage = usage(samples, members.len(), from, self.access.idle());
                    TrialResult::Measurement(Measurement { rates, usage })
                }
                ClientCheck::Unknown => {
                    TrialResult::NotMeasured("the MPS server did not report its clients".into())
                }
                ClientCheck::Missing(member) => TrialResult::NotMeasured(format!(
                    "{} is not a client of the MPS server: it bypassed MPS",
                    members[member].name
                )),
            }),
        }
    }
}

/// A sample of the GPU, or why there are no more.
type SampleResult = Result<(UsageSample, ClientCheck), ProfileError>;

/// Whether members of a set under MPS are clients of its server. A process that cannot reach the server uses
/// the GPU without it silently.
#[derive(Debug, Clone, Copy)]
enum ClientCheck {
    /// The server has not answered.
    Unknown,
    /// They are, or MPS is not used.
    Passed,
    /// This member was not a client when the server last answered.
    Missing(usize),
}

impl ClientCheck {
    /// Asks the server, unless the check has passed.
    fn repeat(self, access: &SharingSetup<'_>, marks: &[PathBuf]) -> ClientCheck {
        match self {
            ClientCheck::Passed => ClientCheck::Passed,
            ClientCheck::Unknown | ClientCheck::Missing(_) => match access.clients() {
                None => ClientCheck::Passed,
                Some(Err(_)) => self,
                Some(Ok(clients)) => {
                    let is_client = |mark: &PathBuf| clients.iter().any(|pid| belongs(*pid, mark));
                    let missing = marks.iter().position(|mark| !is_client(mark));
                    missing.map_or(ClientCheck::Passed, ClientCheck::Missing)
                }
            },
        }
    }
}

/// The GPU memory of the processes with this mark.
fn memory_of(mark: &Path, on_gpu: &[GpuProcess]) -> Option<Bytes> {
    let ours = on_gpu.iter().filter(|process| belongs(process.pid, mark));
    let memory: Vec<Bytes> = ours.filter_map(|process| process.memory).collect();
    (!memory.is_empty()).then(|| memory.into_iter().sum())
}

/// Polls all members; a result if one of them has ended.
fn poll_members(members: &mut [WorkloadProcess], now: Duration) -> Result<Option<TrialResult>, ProfileError> {
    let alone = members.len() == 1;
    for member in members {
        member.read_progress(now);
        if let Some(outcome) = member.ended()? {
            return Ok(Some(ended(member, &outcome, alone)));
        }
    }
    Ok(None)
}

/// A workload that fails alone is infeasible only if it ran out of GPU memory; one that fails beside others
/// is infeasible with them.
fn ended(member: &WorkloadProcess, outcome: &Outcome, alone: bool) -> TrialResult {
    let name = &member.name;
    if outcome.succeeded() {
        return TrialResult::NotMeasured(format!(
            "{name} ended by itself before it was measured: its command must run until it is stopped"
        ));
    }
    if let Some(words) = member.out_of_gpu_memory() {
        return TrialResult::Infeasible(format!("{name} ran out of GPU memory: {words}"));
    }
    let reason = format!("{name} {outcome}: {}", member.last_words());
    if alone { TrialResult::NotMeasured(reason) } else { TrialResult::Infeasible(reason) }
}

fn idle_words(members: &[WorkloadProcess]) -> String {
    let idle = members.iter().find(|member| member.pace.begun().is_none());
    idle.map_or(String::new(), |member| {
        let limit = FIRST_STEP_TIMEOUT.as_secs();
        format!(
            "{} reported no step in {limit} s: it must write {{\"step\": 1}} and so on to $COHABIT_PROGRESS; it last \
             printed: {}",
            member.name,
            member.last_words()
        )
    })
}

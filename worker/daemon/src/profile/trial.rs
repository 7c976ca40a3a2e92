//! One set on the GPU: its members start together, warm up, are measured while all of them run, and stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use cohabit_gpu::GpuProcess;
use cohabit_types::{Bytes, Outcome};

use super::access::Access;
use super::gpu::Gpu;
use super::member::{self, Member, belongs};
use super::pace::{Judgement, Pace, Pacing, Rate, judge};
use super::usage::{Sample, Usage, usage};
use super::workload::Workload;
use super::{ProfileError, Stage};
use crate::files::{At, make_folder};

/// Members have so long to make their first step: interpreters load, kernels are compiled.
const START: Duration = Duration::from_secs(300);

/// Between two looks at the steps of members.
const LOOK: Duration = Duration::from_millis(20);

/// Between two looks at the GPU.
const SAMPLE: Duration = Duration::from_millis(500);

/// Under what a set runs.
pub(super) struct Trial<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) access: &'a Access<'a>,
    pub(super) pacing: Pacing,
    /// For files of the members.
    pub(super) folder: &'a Path,
    pub(super) until: Until<'a>,
}

/// What ends a set before its time.
#[derive(Clone, Copy)]
pub(super) struct Until<'a> {
    /// Somebody asked for it.
    pub(super) asked: &'a AtomicBool,
    /// The command's time is over.
    pub(super) deadline: Option<Instant>,
}

/// Why a command ends before it has measured everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Somebody asked for it.
    Asked,
    /// Its time is over.
    TimeOver,
}

/// What came of a set.
#[derive(Debug)]
pub(super) enum Verdict {
    Measured(Measured),
    /// It cannot run on this GPU: why.
    Infeasible(String),
    /// It says nothing: why.
    NotMeasured(String),
    Stopped(Stop),
}

/// Figures of a set that ran.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) rates: Vec<Rate>,
    pub(super) usage: Usage,
}

impl Until<'_> {
    pub(super) fn stopped(&self) -> Option<Stop> {
        if self.asked.load(Ordering::Relaxed) {
            return Some(Stop::Asked);
        }
        self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| Stop::TimeOver)
    }
}

impl Trial<'_> {
    /// Runs these workloads as one set.
    pub(super) fn run(
        &self,
        workloads: &[&Workload],
        tell: &mut dyn FnMut(Stage),
    ) -> Result<Verdict, ProfileError> {
        self.remove_folder()?;
        make_folder(self.folder)?;
        tell(Stage::Starting);
        let mut members = Vec::new();
        let verdict = match self.start(workloads, &mut members) {
            Ok(()) => self.watch(&mut members, tell),
            Err(why) => Ok(Verdict::NotMeasured(why)),
        };
        member::stop(members, self.access.removal().as_ref())?;
        self.remove_folder()?;
        verdict
    }

    /// Starts all, or says which could not be started and why.
    fn start(&self, workloads: &[&Workload], members: &mut Vec<Member>) -> Result<(), String> {
        for (number, workload) in workloads.iter().enumerate() {
            let started = Member::start(workload, self.folder, number, &self.access.environment(workload));
            members
                .push(started.map_err(|error| format!("{} could not be started: {error}", workload.name))?);
        }
        Ok(())
    }

    fn remove_folder(&self) -> Result<(), ProfileError> {
        if self.folder.exists() {
            fs::remove_dir_all(self.folder).at("remove the folder", self.folder)?;
        }
        Ok(())
    }

    /// Looks at the GPU from a thread of its own, so that a driver that takes its time does not blur the
    /// rates.
    fn watch(&self, members: &mut [Member], tell: &mut dyn FnMut(Stage)) -> Result<Verdict, ProfileError> {
        let begin = Instant::now();
        let marks: Vec<PathBuf> = members.iter().map(Member::mark).collect();
        let (over, is_over) = channel::<()>();
        let (sender, samples) = channel();
        thread::scope(|scope| {
            scope.spawn(move || self.sample(begin, &marks, &is_over, &sender));
            let verdict = self.follow(begin, members, &samples, tell);
            drop(over);
            verdict
        })
    }

    fn sample(&self, begin: Instant, marks: &[PathBuf], is_over: &Receiver<()>, to: &Sender<Sampled>) {
        let mut proof = Proof::Open;
        loop {
            proof = proof.or_look(self.access, marks);
            let sampled = self.gpu.look().map(|look| Sample {
                at: begin.elapsed(),
                reading: look.reading,
                members: marks.iter().map(|mark| memory_of(mark, &look.processes)).collect(),
            });
            let failed = sampled.is_err();
            if to.send(sampled.map(|sample| (sample, proof))).is_err() || failed {
                return;
            }
            if is_over.recv_timeout(SAMPLE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    fn follow(
        &self,
        begin: Instant,
        members: &mut [Member],
        samples: &Receiver<Sampled>,
        tell: &mut dyn FnMut(Stage),
    ) -> Result<Verdict, ProfileError> {
        let mut seen: Vec<Sample> = Vec::new();
        let mut proof = Proof::Open;
        loop {
            let now = begin.elapsed();
            for sampled in samples.try_iter() {
                let (sample, latest) = sampled?;
                seen.push(sample);
                proof = latest;
            }
            if let Some(stop) = self.until.stopped() {
                return Ok(Verdict::Stopped(stop));
            }
            if let Some(verdict) = look(members, now)? {
                return Ok(verdict);
            }
            match self.measuring_from(members) {
                None if now > START => return Ok(Verdict::NotMeasured(idle_words(members))),
                None => {}
                Some(from) if now < from => tell(Stage::WarmingUp),
                Some(from) => {
                    tell(Stage::Measuring);
                    if let Some(verdict) = self.verdict(members, from, now, &seen, proof) {
                        return Ok(verdict);
                    }
                }
            }
            thread::sleep(LOOK);
        }
    }

    /// From when on steps count: all members have to be past their warm-up.
    fn measuring_from(&self, members: &[Member]) -> Option<Duration> {
        let begun: Option<Vec<Duration>> = members.iter().map(|member| member.pace.begun()).collect();
        begun?.into_iter().max().map(|last| last + self.pacing.warm_up)
    }

    fn verdict(
        &self,
        members: &[Member],
        from: Duration,
        now: Duration,
        samples: &[Sample],
        proof: Proof,
    ) -> Option<Verdict> {
        let paces: Vec<&Pace> = members.iter().map(|member| &member.pace).collect();
        match judge(&paces, from, now, self.pacing.steady) {
            Judgement::Wait => None,
            Judgement::Stalled(member) => {
                let name = &members[member].name;
                Some(Verdict::NotMeasured(format!("{name} made no two steps while it was measured")))
            }
            Judgement::Rates(rates) => Some(match proof {
                Proof::Given => {
                    let usage = usage(samples, members.len(), from, self.access.idle());
                    Verdict::Measured(Measured { rates, usage })
                }
                Proof::Open => Verdict::NotMeasured("the MPS server did not say who its clients are".into()),
                Proof::Missing(member) => Verdict::NotMeasured(format!(
                    "{} is no client of the MPS server: it got round it",
                    members[member].name
                )),
            }),
        }
    }
}

/// A look at the GPU, or why there will be no more.
type Sampled = Result<(Sample, Proof), ProfileError>;

/// Whether members of a set under MPS are clients of its server: a process that cannot reach it uses the GPU
/// all the same, and says nothing.
#[derive(Debug, Clone, Copy)]
enum Proof {
    /// The server has not said.
    Open,
    /// They are; or there is no MPS.
    Given,
    /// This one was none when the server last said.
    Missing(usize),
}

impl Proof {
    /// Asks the server, unless it has proved it.
    fn or_look(self, access: &Access<'_>, marks: &[PathBuf]) -> Proof {
        match self {
            Proof::Given => Proof::Given,
            Proof::Open | Proof::Missing(_) => match access.clients() {
                None => Proof::Given,
                Some(Err(_)) => self,
                Some(Ok(clients)) => {
                    let is_client = |mark: &PathBuf| clients.iter().any(|pid| belongs(*pid, mark));
                    let missing = marks.iter().position(|mark| !is_client(mark));
                    missing.map_or(Proof::Given, Proof::Missing)
                }
            },
        }
    }
}

/// What the processes with this mark hold.
fn memory_of(mark: &Path, on_gpu: &[GpuProcess]) -> Option<Bytes> {
    let ours = on_gpu.iter().filter(|process| belongs(process.pid, mark));
    let memory: Vec<Bytes> = ours.filter_map(|process| process.memory).collect();
    (!memory.is_empty()).then(|| memory.into_iter().sum())
}

/// Looks at all members; a verdict if one of them has ended.
fn look(members: &mut [Member], now: Duration) -> Result<Option<Verdict>, ProfileError> {
    let alone = members.len() == 1;
    for member in members {
        member.look(now);
        if let Some(outcome) = member.ended()? {
            return Ok(Some(ended(member, &outcome, alone)));
        }
    }
    Ok(None)
}

/// Alone, only the want of memory is the GPU's fault; what fails beside others fails because of them.
fn ended(member: &Member, outcome: &Outcome, alone: bool) -> Verdict {
    let name = &member.name;
    if outcome.succeeded() {
        return Verdict::NotMeasured(format!(
            "{name} ended by itself before it was measured: its command has to run until it is told to end"
        ));
    }
    if let Some(words) = member.out_of_gpu_memory() {
        return Verdict::Infeasible(format!("{name} ran out of GPU memory: {words}"));
    }
    let told = format!("{name} {outcome}: {}", member.last_words());
    if alone { Verdict::NotMeasured(told) } else { Verdict::Infeasible(told) }
}

fn idle_words(members: &[Member]) -> String {
    let idle = members.iter().find(|member| member.pace.begun().is_none());
    idle.map_or(String::new(), |member| {
        let limit = START.as_secs();
        format!(
            "{} reported no step in {limit} s: it has to write {{\"step\": 1}} and so on to $COHABIT_PROGRESS; it last \
             printed: {}",
            member.name,
            member.last_words()
        )
    })
}

//! The comparison as a whole: measures the sets that the table lacks, one after the other.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use cohabit_types::{Device, SharingStrategy};

use crate::agenda::{ProfilePlan, WorkloadSet, agenda};
use crate::details::{MemberDetails, NotMeasured, RunDetails, SetDetails};
use crate::error::ProfileError;
use crate::gpu::TargetGpu;
use crate::observer::{ProfileObserver, TrialStage, UnmeasuredSet};
use crate::options::{BusyGpu, ProfileOptions};
use crate::rates::{Rate, TrialTiming};
use crate::results::Results;
use crate::sharing_setup::{self, SharingSetup};
use crate::table::{MemberFigures, ProfileRow, rounded};
use crate::trial::{EarlyStop, Measurement, StopConditions, Trial, TrialResult};
use crate::workload::ProfileWorkload;
use cohabit_host::files::create_directory;
use cohabit_host::state_lock::{StateLock, lock};

/// The estimated time for starting and stopping a set, besides warm-up and measuring.
const TRIAL_OVERHEAD: Duration = Duration::from_secs(15);

/// A comparison that is ready to start.
pub struct Profiler {
    options: ProfileOptions,
    gpu: TargetGpu,
    results: Results,
    left: Vec<WorkloadSet>,
    _lock: StateLock,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileReport {
    /// The rows of this GPU, new and old.
    pub rows: Vec<ProfileRow>,
    /// Sets that this command added to it.
    pub added: usize,
    /// Sets that could not be measured.
    pub unmeasured: Vec<UnmeasuredSet>,
    /// Sets that are left to measure.
    pub left: usize,
    /// Why it ended early, if it did.
    pub stopped: Option<EarlyStop>,
}

impl Profiler {
    /// Checks the requirements before anything is started: the table fits, and the GPU exists, is free and
    /// can be shared in the compared ways.
    ///
    /// # Errors
    /// Which requirement is not met.
    pub fn prepare(options: ProfileOptions) -> Result<Profiler, ProfileError> {
        create_directory(&options.state)?;
        let lock = lock(&options.state).map_err(|_| ProfileError::WorkerHere(options.state.clone()))?;
        let results = Results::open(&options.table)?;
        results.check(&options.workloads)?;
        let gpu = TargetGpu::open(options.nvml_library.as_deref(), options.gpu.as_deref())?;
        options
            .comparison
            .sharing
            .iter()
            .try_for_each(|sharing| sharing_setup::check(&gpu.device, *sharing))?;
        drop(SharingSetup::open(&gpu, &options.state, &options.search_path)?);
        if options.busy == BusyGpu::Refuse {
            gpu.must_be_free()?;
        }
        let left = left(&options.workloads, &options.comparison, &results, &gpu.device)?;
        Ok(Profiler { options, gpu, results, left, _lock: lock })
    }

    /// The GPU.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.gpu.device
    }

    /// How many sets are left to measure.
    #[must_use]
    pub fn left(&self) -> usize {
        self.left.len()
    }

    /// An estimate of how long they take together.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let TrialTiming { warm_up, steady } = self.options.pacing;
        (warm_up + steady + TRIAL_OVERHEAD) * u32::try_from(self.left.len()).unwrap_or(u32::MAX)
    }

    /// Measures what is left, until `interrupted` is set.
    ///
    /// # Errors
    /// Why it cannot continue. What was measured before is in the table.
    pub fn run(
        mut self,
        watcher: &mut dyn ProfileObserver,
        interrupted: &AtomicBool,
    ) -> Result<ProfileReport, ProfileError> {
        let begin = Instant::now();
        let deadline = self.options.max_time.map(|limit| begin + limit);
        let until = StopConditions { interrupted, deadline };
        let run = self.results.begin(self.details());
        let sets = std::mem::take(&mut self.left);
        let mut ending =
            ProfileReport { rows: Vec::new(), added: 0, unmeasured: Vec::new(), left: 0, stopped: None };
        let access = SharingSetup::open(&self.gpu, &self.options.state, &self.options.search_path)?;
        let mut course =
            ProfileRun { options: &self.options, gpu: &self.gpu, results: self.results, access, run, until };
        for (at, set) in sets.iter().enumerate() {
            let names = course.names(set);
            watcher.begins(&names, set.sharing, at, sets.len());
            if let Some(stop) = course.measure(set, &mut ending, watcher)? {
                ending.stopped = Some(stop);
                ending.left = sets.len() - at;
                break;
            }
        }
        let here = |row: &&ProfileRow| row.gpu == self.gpu.device.model;
        ending.rows = course.results.rows().iter().filter(here).cloned().collect();
        Ok(ending)
    }

    fn details(&self) -> RunDetails {
        let TrialTiming { warm_up, steady } = self.options.pacing;
        RunDetails {
            command: self.options.command.clone(),
            started_at: now(),
            cohabit: env!("CARGO_PKG_VERSION").to_owned(),
            gpu: self.gpu.device.clone(),
            warm_up_s: warm_up.as_secs_f64(),
            steady_s: steady.as_secs_f64(),
            seed: self.options.comparison.seed,
        }
    }
}

/// All sets that the table lacks. Refuses sets with members that are neither measured alone nor will be.
fn left(
    workloads: &[ProfileWorkload],
    comparison: &ProfilePlan,
    results: &Results,
    device: &Device,
) -> Result<Vec<WorkloadSet>, ProfileError> {
    let name = |member: &usize| workloads[*member].name.as_str();
    let mut sets = agenda(workloads.len(), comparison);
    sets.retain(|set| {
        !results.has(&device.model, set.sharing, &set.members.iter().map(name).collect::<Vec<_>>())
    });
    for set in &sets {
        for member in &set.members {
            let alone = WorkloadSet { sharing: SharingStrategy::Exclusive, members: vec![*member] };
            if results.solo(&device.model, name(member)).is_none() && !sets.contains(&alone) {
                return Err(ProfileError::NotAlone(name(member).to_owned()));
            }
        }
    }
    Ok(sets)
}

/// A running command.
struct ProfileRun<'a> {
    options: &'a ProfileOptions,
    gpu: &'a TargetGpu,
    results: Results,
    access: SharingSetup<'a>,
    run: usize,
    until: StopConditions<'a>,
}

impl ProfileRun<'_> {
    fn workloads(&self, set: &WorkloadSet) -> Vec<&ProfileWorkload> {
        set.members.iter().map(|member| &self.options.workloads[*member]).collect()
    }

    fn names(&self, set: &WorkloadSet) -> Vec<String> {
        self.workloads(set).iter().map(|workload| workload.name.clone()).collect()
    }

    /// Measures a set, unless the command is to stop.
    fn measure(
        &mut self,
        set: &WorkloadSet,
        ending: &mut ProfileReport,
        watcher: &mut dyn ProfileObserver,
    ) -> Result<Option<EarlyStop>, ProfileError> {
        if let Some(stop) = self.until.stopped() {
            return Ok(Some(stop));
        }
        let begin = Instant::now();
        let verdict = match self.lacks(set) {
            Some(why) => TrialResult::NotMeasured(why),
            None => self.attempt(set, &mut |stage| watcher.stage(stage))?,
        };
        let (measured, reason) = match verdict {
            TrialResult::Measurement(measured) => (Some(measured), None),
            TrialResult::Infeasible(why) => (None, Some(why)),
            TrialResult::NotMeasured(why) => {
                return self.not_measured(set, &why, ending, watcher).map(|()| None);
            }
            TrialResult::Stopped(stop) => return Ok(Some(stop)),
        };
        watcher.ended(reason.as_deref());
        let rows = self.rows(set, measured.as_ref());
        let details = self.set_details(set, rows[0].set, measured.as_ref(), reason, begin.elapsed());
        self.results.add(rows, details)?;
        ending.added += 1;
        Ok(None)
    }

    /// Why a set cannot be measured, if that is known in advance.
    fn lacks(&self, set: &WorkloadSet) -> Option<String> {
        let is_solo = set.members.len() == 1 && set.sharing == SharingStrategy::Exclusive;
        let alone = |workload: &&ProfileWorkload| {
            let solo = self.results.solo(&self.gpu.device.model, &workload.name);
            solo.is_some_and(|row| row.feasible)
        };
        let workloads = self.workloads(set);
        let lacking = workloads.iter().find(|workload| !alone(workload)).filter(|_| !is_solo)?;
        Some(format!("{} does not run alone", lacking.name))
    }

    fn attempt(
        &mut self,
        set: &WorkloadSet,
        tell: &mut dyn FnMut(TrialStage),
    ) -> Result<TrialResult, ProfileError> {
        self.access.enter(set.sharing)?;
        let workloads = self.workloads(set);
        let folder = folder(&self.options.state);
        let (pacing, until) = (self.options.pacing, self.until);
        let trial = Trial { gpu: self.gpu, access: &self.access, pacing, folder: &folder, until };
        let verdict = trial.run(&workloads, tell)?;
        let faults = self.access.faults();
        if self.options.busy == BusyGpu::Refuse {
            self.gpu.must_settle(self.access.idle())?;
        }
        Ok(match verdict {
            TrialResult::Infeasible(why) if !faults.is_empty() => {
                TrialResult::Infeasible(format!("{why}; the MPS server says: {}", faults.join("; ")))
            }
            verdict @ (TrialResult::Measurement(_)
            | TrialResult::Infeasible(_)
            | TrialResult::NotMeasured(_)
            | TrialResult::Stopped(_)) => verdict,
        })
    }

    fn not_measured(
        &mut self,
        set: &WorkloadSet,
        why: &str,
        ending: &mut ProfileReport,
        watcher: &mut dyn ProfileObserver,
    ) -> Result<(), ProfileError> {
        watcher.ended(Some(why));
        let workloads = self.names(set);
        ending.unmeasured.push(UnmeasuredSet {
            workloads: workloads.clone(),
            sharing: set.sharing,
            reason: why.to_owned(),
        });
        let sharing = set.sharing.word().to_owned();
        self.results.add_not_measured(NotMeasured {
            run: self.run,
            sharing,
            workloads,
            reason: why.to_owned(),
        })
    }

    fn rows(&self, set: &WorkloadSet, measured: Option<&Measurement>) -> Vec<ProfileRow> {
        let number = self.results.next_set();
        let gpu = &self.gpu.device.model;
        let row = |(at, workload): (usize, &&ProfileWorkload)| {
            let together = measured.map(|measured| figures(measured, at)).unwrap_or_default();
            let solo = self.results.solo(gpu, &workload.name);
            let features = match solo {
                Some(solo) => solo.features.clone(),
                None => workload.features().into_iter().chain(performance(measured)).collect(),
            };
            ProfileRow {
                set: number,
                gpu: gpu.clone(),
                sharing: set.sharing,
                model: workload.model.clone(),
                batch: workload.batch,
                solo: solo.map_or(together, |row| row.together),
                together,
                feasible: measured.is_some(),
                workload: workload.name.clone(),
                precision: workload.precision.clone(),
                features,
            }
        };
        self.workloads(set).iter().enumerate().map(row).collect()
    }

    fn set_details(
        &self,
        set: &WorkloadSet,
        number: u64,
        measured: Option<&Measurement>,
        reason: Option<String>,
        took: Duration,
    ) -> SetDetails {
        let rates = measured.map_or(&[][..], |measured| &measured.rates);
        let member = |(at, workload): (usize, &&ProfileWorkload)| MemberDetails {
            workload: workload.name.clone(),
            command: workload.command.clone(),
            windows: rates
                .get(at)
                .map_or(Vec::new(), |rate| rate.windows.iter().map(|it| rounded(*it)).collect()),
            steady: rates.get(at).is_some_and(Rate::is_steady),
        };
        SetDetails {
            set: number,
            run: self.run,
            sharing: set.sharing.word().to_owned(),
            ended_at: now(),
            took_s: rounded(took.as_secs_f64()),
            feasible: measured.is_some(),
            reason,
            members: self.workloads(set).iter().enumerate().map(member).collect(),
            performance: measured.and_then(|measured| measured.usage.performance.clone()),
        }
    }
}

fn figures(measured: &Measurement, at: usize) -> MemberFigures {
    MemberFigures {
        rate: Some(measured.rates[at].per_second),
        spread: measured.rates[at].spread,
        memory: measured.usage.memory[at].map(|bytes| bytes.0),
        utilization: measured.usage.utilization,
    }
}

/// The values of the performance monitor for a workload alone, as columns.
fn performance(measured: Option<&Measurement>) -> Vec<(String, String)> {
    let Some(performance) = measured.and_then(|measured| measured.usage.performance.as_ref()) else {
        return Vec::new();
    };
    let columns = [
        ("solo_sm_active", performance.sm_active),
        ("solo_sm_occupancy", performance.sm_occupancy),
        ("solo_tensor_active", performance.tensor_active),
        ("solo_memory_bandwidth", performance.memory_bandwidth),
    ];
    let known = columns.into_iter().filter_map(|(name, value)| Some((name, rounded(value?))));
    known.map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

/// The directory for the files of the current set.
fn folder(state: &Path) -> PathBuf {
    state.join("profile")
}

/// RFC 3339, UTC.
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

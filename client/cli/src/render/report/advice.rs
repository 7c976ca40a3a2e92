//! Advice on a job: a table of rules, each a pure function of the job's figures.

use cohabit_client::types::{Bytes, Span, counted};

use super::job_figures::{JobReport, MemoryUse};
use super::units::percent;

/// Nothing is said of a job that ran for a shorter time.
const SHORTEST: Span = Span::from_secs(600);
/// A GPU that is busy for a smaller part of the time waits for something.
const LOW_UTILIZATION: f64 = 0.5;
/// Below this, half of a GPU would do.
const HALF: f64 = 0.5;
/// So much of the memory that was used is left as room by what is advised, in tenths.
const ROOM_TENTHS: u64 = 11;
/// Idle time that is worth a sentence, in seconds on a GPU.
const MUCH_IDLE: f64 = 1_800.0;
/// So many times the run time a time limit may be.
const GENEROUS: u64 = 4;
/// With this many cores for each GPU or fewer, the loading of data is suspected.
const FEW_CORES: u32 = 2;
/// So many are advised.
const ENOUGH_CORES: u32 = 8;

/// A rule: a sentence with the remedy, if it applies.
type AdviceRule = fn(&JobReport) -> Option<String>;

/// The rules, in the order of their sentences.
const RULES: [AdviceRule; 7] =
    [less_memory, half_a_gpu, waiting_gpu, idle_gpus, unused_gpus, shorter_limit, lost_work];

impl JobReport {
    /// What would help, a sentence each.
    pub(crate) fn advice(&self) -> Vec<String> {
        if self.ran < SHORTEST {
            return Vec::new();
        }
        RULES.iter().filter_map(|rule| rule(self)).collect()
    }
}

/// The job claimed more than twice the memory that it used, and several such jobs would fit a GPU.
fn less_memory(report: &JobReport) -> Option<String> {
    let memory @ MemoryUse { used, claimed, of_device } = report.memory?;
    let enough = enough_memory(memory);
    let fit = of_device.0 / enough.0.max(1);
    let is_wasteful = used.0 > 0 && used.0.saturating_mul(2) < claimed.0 && fit >= 2;
    let fit = if fit == 2 { "two".to_owned() } else { fit.to_string() };
    let gib = enough.0 >> 30;
    is_wasteful.then(|| {
        format!("It used {used} of the {claimed} it claimed: `--gpu-mem {gib}G` would let {fit} share.")
    })
}

/// The memory used with some room, in whole gibibytes.
fn enough_memory(memory: MemoryUse) -> Bytes {
    Bytes((memory.used.0.saturating_mul(ROOM_TENTHS) / 10).div_ceil(1 << 30) << 30)
}

/// A whole GPU that is busy for less than half of the time, with half of its memory to spare.
fn half_a_gpu(report: &JobReport) -> Option<String> {
    let busy = report.efficiency()?;
    let memory = report.memory?;
    let fits = memory.used.0.saturating_mul(2) < memory.of_device.0;
    (report.whole_gpus == Some(1) && !report.was_shared && busy < HALF && fits).then(|| {
        let busy = percent(Some(busy));
        format!("Its GPU was busy {busy} of the time: `--gpus 0.5` would hold half of it, and start earlier.")
    })
}

/// GPUs that wait for data because of few cores.
fn waiting_gpu(report: &JobReport) -> Option<String> {
    let waited = 1.0 - report.efficiency()?;
    let (cores, gpus) = (report.cores, report.node_gpus.max(1));
    let is_short = cores > 0 && cores <= gpus.saturating_mul(FEW_CORES);
    (!report.was_shared && waited > 1.0 - LOW_UTILIZATION && is_short).then(|| {
        format!(
            "{} of the time the GPU waited, and the job had {} on each node: `--cpus {}` gives the loading of \
             data more.",
            percent(Some(waited)),
            counted(cores, "core", "cores"),
            gpus.saturating_mul(ENOUGH_CORES),
        )
    })
}

/// GPUs that were held and did nothing for long.
fn idle_gpus(report: &JobReport) -> Option<String> {
    let part = report.idle / report.measured;
    (report.idle >= MUCH_IDLE && part >= 0.1).then(|| {
        format!(
            "It held GPUs for {} in which they did nothing for ten minutes or more on end: end the job when \
             its work is done, and prepare data in a job with `--gpus 0`.",
            Span::from_secs_f64(report.idle.round())
        )
    })
}

/// Some GPUs did nothing while others worked.
fn unused_gpus(report: &JobReport) -> Option<String> {
    let (gpus, unused) = (report.gpus, report.unused_gpus);
    (unused > 0).then(|| {
        format!(
            "{unused} of its {gpus} GPUs did nothing: check that the program uses all of them, or ask for \
             `--gpus {}`.",
            gpus - unused
        )
    })
}

/// A time limit of many times the run time keeps a job from gaps in the schedule.
fn shorter_limit(report: &JobReport) -> Option<String> {
    let limit = report.time_limit.filter(|_| report.completed)?;
    let (ran, limit_us) = (report.latest, limit.as_micros());
    let hours = (ran.as_micros().saturating_mul(2)).div_ceil(3_600_000_000);
    (limit_us > ran.as_micros().saturating_mul(GENEROUS) && hours * 3_600_000_000 < limit_us).then(|| {
        format!(
            "It ran for {ran} of the {limit} it was allowed: `--time {hours}h` lets it start in smaller gaps."
        )
    })
}

/// Attempts that were lost, without a checkpoint to go on from.
fn lost_work(report: &JobReport) -> Option<String> {
    let lost = report.lost_attempts;
    (lost > 0 && !report.has_checkpoint).then(|| {
        format!(
            "{} with {} on GPUs: save checkpoints (`--checkpoint DIR`), so that the next attempt goes on where \
             the last one ended.",
            counted(lost, "attempt was lost", "attempts were lost"),
            Span::from_secs_f64(report.lost.round())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// An hour on one GPU, as it should be.
    fn good() -> JobReport {
        let memory =
            MemoryUse { used: Bytes(70 * GIB), claimed: Bytes(80 * GIB), of_device: Bytes(80 * GIB) };
        JobReport {
            job: "7".into(),
            name: "train".into(),
            state: "COMPLETED",
            attempts: 1,
            ran: Span::from_secs(3_600),
            latest: Span::from_secs(3_600),
            completed: true,
            time_limit: None,
            held: 3_600.0,
            measured: 3_600.0,
            busy: 3_400.0,
            idle: 0.0,
            lost_attempts: 0,
            lost: 0.0,
            has_checkpoint: false,
            memory: Some(memory),
            whole_gpus: Some(1),
            cores: 8,
            node_gpus: 1,
            gpus: 1,
            unused_gpus: 0,
            was_shared: false,
        }
    }

    fn with(change: impl FnOnce(&mut JobReport)) -> JobReport {
        let mut report = good();
        change(&mut report);
        report
    }

    fn used(gib: u64) -> Option<MemoryUse> {
        Some(MemoryUse { used: Bytes(gib * GIB), claimed: Bytes(80 * GIB), of_device: Bytes(80 * GIB) })
    }

    #[test]
    fn nothing_is_said_of_a_job_that_did_well_or_ran_for_less_than_ten_minutes() {
        assert_eq!(good().advice(), Vec::<String>::new());
        let wasteful = |ran| with(|it| (it.memory, it.ran) = (used(12), Span::from_secs(ran)));
        assert_eq!((wasteful(599).advice().len(), wasteful(600).advice().len()), (0, 1));
    }

    #[test]
    fn memory_that_was_claimed_and_not_used_would_do_for_others() {
        let told = |gib| less_memory(&with(|it| it.memory = used(gib)));
        let twelve = "It used 12 GiB of the 80 GiB it claimed: `--gpu-mem 14G` would let 5 share.";
        assert_eq!(told(12).as_deref(), Some(twelve));
        assert!(told(30).unwrap().ends_with("`--gpu-mem 33G` would let two share."));
        assert_eq!(told(40), None, "half of it");
        assert_eq!(told(0), None, "a reading of nothing tells nothing");
        assert_eq!(less_memory(&with(|it| it.memory = None)), None);
    }

    #[test]
    fn half_a_gpu_is_enough_for_who_uses_less_than_half_of_one() {
        let told = |change: fn(&mut JobReport)| {
            half_a_gpu(&with(|it| {
                (it.busy, it.memory) = (1_080.0, used(30));
                change(it);
            }))
        };
        assert!(told(|_| {}).unwrap().starts_with("Its GPU was busy 30% of the time: `--gpus 0.5`"));
        assert_eq!(told(|it| it.memory = used(50)), None);
        assert_eq!(told(|it| it.was_shared = true), None);
        assert_eq!(told(|it| it.whole_gpus = Some(2)), None);
        assert_eq!(told(|it| it.measured = 0.0), None);
    }

    #[test]
    fn a_gpu_that_waits_beside_few_cores_is_told() {
        let waits = |cores| waiting_gpu(&with(|it| (it.busy, it.cores) = (1_440.0, cores)));
        assert!(waits(1).unwrap().starts_with("60% of the time the GPU waited, and the job had 1 core on"));
        assert_eq!((waits(8), waits(0)), (None, None), "none are claimed: all are there");
    }

    #[test]
    fn long_idle_time_is_told() {
        let idle = |secs| idle_gpus(&with(|it| it.idle = secs));
        assert!(idle(1_800.0).unwrap().starts_with("It held GPUs for 30 min 0 s in which they did nothing"));
        assert_eq!(idle(1_799.0), None);
        assert_eq!(
            idle_gpus(&with(|it| (it.idle, it.measured) = (1_800.0, 40_000.0))),
            None,
            "little of all"
        );
    }

    #[test]
    fn gpus_that_did_nothing_while_others_worked_are_counted() {
        let told = unused_gpus(&with(|it| (it.gpus, it.unused_gpus) = (4, 3))).unwrap();
        assert!(told.starts_with("3 of its 4 GPUs did nothing") && told.ends_with("`--gpus 1`."), "{told}");
        assert_eq!(unused_gpus(&good()), None);
    }

    #[test]
    fn a_limit_of_many_times_the_run_time_can_be_shorter() {
        let limited =
            |hours: u64| shorter_limit(&with(|it| it.time_limit = Some(Span::from_secs(hours * 3_600))));
        assert!(limited(24).unwrap().contains("1 h 0 min of the 1 d 0 h it was allowed: `--time 2h`"));
        assert_eq!((limited(4), shorter_limit(&good())), (None, None));
        let failed = with(|it| (it.completed, it.time_limit) = (false, Some(Span::from_secs(86_400))));
        assert_eq!(shorter_limit(&failed), None, "it might have run for longer");
    }

    #[test]
    fn lost_attempts_without_checkpoint_are_told() {
        let lost = |has_checkpoint| {
            lost_work(&with(|it| {
                (it.lost_attempts, it.lost, it.has_checkpoint) = (2, 7_200.0, has_checkpoint);
            }))
        };
        assert!(lost(false).unwrap().starts_with("2 attempts were lost with 2 h 0 min on GPUs"));
        assert_eq!((lost(true), lost_work(&good())), (None, None));
    }
}

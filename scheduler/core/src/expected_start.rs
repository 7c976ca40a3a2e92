//! When queued jobs start and end, with the ranges that are left by the run times of the jobs before them.
//!
//! The policy says in which order its jobs start, and evidence says how long each runs, in a range. So the
//! queue is replayed with many draws from those ranges, independent of each other; the times of a job are
//! read off the replays. Jobs that are submitted later and come first are not foreseen.

use std::collections::BTreeMap;

use cohabit_policy::{QueueForecast, RemainingTime};
use cohabit_types::{JobId, Span, Time};

/// How often the queue is replayed: a tenth of that is enough to tell where one in ten lies.
const REPLAYS: usize = 64;
/// How many jobs at the front of the queue are replayed. The time of an answer grows with it, and times so
/// far ahead would say little.
const MAX_REPLAYED: usize = 1_000;

/// A time that is known, or known in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedTime {
    /// In half of the cases it is earlier.
    pub(crate) at: Time,
    /// The times between which it is in eight of ten cases; `None` where it is known exactly.
    pub(crate) between: Option<[Time; 2]>,
}

impl ExpectedTime {
    /// The time after this much more.
    pub(crate) fn after(now: Time, left: RemainingTime) -> ExpectedTime {
        let between = [now + left.least, now + left.most];
        ExpectedTime { at: now + left.typical, between: Some(between).filter(|[least, most]| least < most) }
    }

    /// What these equally likely times say.
    fn of(mut times: [Time; REPLAYS]) -> ExpectedTime {
        times.sort_unstable();
        let middle = Span::from_micros(times[REPLAYS / 2].since(times[REPLAYS / 2 - 1]).as_micros() / 2);
        let between = [times[REPLAYS / 10], times[REPLAYS - 1 - REPLAYS / 10]];
        ExpectedTime {
            at: times[REPLAYS / 2 - 1] + middle,
            between: Some(between).filter(|[least, most]| least < most),
        }
    }
}

/// When a queued job starts and, where it is known how long it runs, ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedRun {
    pub(crate) start: ExpectedTime,
    pub(crate) end: Option<ExpectedTime>,
}

/// Replays the queue. `time_left` says how much longer a job runs, or how long it will.
pub(crate) fn expected_runs(
    queue: &QueueForecast,
    now: Time,
    time_left: impl Fn(JobId) -> Option<RemainingTime>,
) -> BTreeMap<JobId, ExpectedRun> {
    let mut known: BTreeMap<JobId, Option<RemainingTime>> = BTreeMap::new();
    let mut left = |job| *known.entry(job).or_insert_with(|| time_left(job));
    let replays: [Vec<Option<Time>>; REPLAYS] = std::array::from_fn(|replay| {
        queue.replay(now, MAX_REPLAYED, |job| Some(left(job)?.at_part(part_of(job, replay))))
    });
    let mut runs = BTreeMap::new();
    for (place, job) in queue.jobs.iter().map(|it| it.job).take(MAX_REPLAYED).enumerate() {
        // Whether a job starts at all does not depend on the draws.
        if replays[0][place].is_none() {
            continue;
        }
        let starts: [Time; REPLAYS] = std::array::from_fn(|replay| replays[replay][place].unwrap_or(now));
        let end = |replay: usize, left: RemainingTime| starts[replay] + left.at_part(part_of(job, replay));
        let end = left(job).map(|left| ExpectedTime::of(std::array::from_fn(|replay| end(replay, left))));
        runs.insert(job, ExpectedRun { start: ExpectedTime::of(starts), end });
    }
    runs
}

/// The part of cases in which a job takes less than in this replay. Over all replays of a job, the parts are
/// spread evenly, in an order of its own.
fn part_of(job: JobId, replay: usize) -> f64 {
    let own = mixed(mixed(job.number) ^ u64::from(job.index.unwrap_or(0)));
    let (turn, step, first) = (own & 63, (own >> 8) | 1, own >> 40);
    let place = ((replay as u64 ^ turn).wrapping_mul(step).wrapping_add(first)) % REPLAYS as u64;
    (place as f64 + 0.5) / REPLAYS as f64
}

/// The finalizer of splitmix64 (Steele, Lea and Flood, 2014).
const fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

//! What users and projects had of the cluster over some days, and what became of it.
//!
//! Amounts are seconds on GPUs and host slots, each times the part that was held.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{JobState, Span, Time};

/// What to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReportRequest {
    /// The report begins with the day, in UTC, of this time.
    pub since: Time,
    /// It ends with the day, in UTC, of this time.
    pub until: Time,
    /// What has a row.
    pub by: UsageGrouping,
}

/// What has a row in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsageGrouping {
    /// Each user.
    User,
    /// Each project.
    Project,
    /// Each project, and each user within it.
    ProjectAndUser,
}

/// The report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    /// When its first day begins.
    pub since: Time,
    /// When it ends: with its last day, or now.
    pub until: Time,
    /// Its rows, by project and user.
    pub rows: Vec<UsageReportRow>,
    /// All that the client may see, together.
    pub total: UsageSums,
    /// The same for each day on which there was something.
    pub days: Vec<UsageDay>,
}

/// A row of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageReportRow {
    /// The project; the user's own name where they are in none. Nothing where the row is of a user.
    pub project: Option<String>,
    /// The user. Nothing where the row is of all users of a project.
    pub user: Option<String>,
    /// The sums.
    pub sums: UsageSums,
    /// What it held as a part of what everybody held, 0 to 1; nothing where nobody held anything.
    pub used_part: Option<f64>,
    /// What it is entitled to by the present weights, among those who had jobs in these days, 0 to 1.
    pub entitled_part: f64,
}

/// What a day saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageDay {
    /// When it begins.
    pub start: Time,
    /// What was held on it.
    pub amounts: UsageAmounts,
}

/// What jobs had and did.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageSums {
    /// Jobs that ended, members of arrays one by one, by state. A job that is queued again ends again.
    pub jobs: BTreeMap<JobState, u64>,
    /// Attempts that ended, by how.
    pub attempts: BTreeMap<String, u64>,
    /// How long attempts that started had waited for room only.
    pub waits: WaitTimes,
    /// Time on GPUs.
    pub amounts: UsageAmounts,
}

/// Seconds on GPUs and host slots, each times the part that was held.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UsageAmounts {
    /// From the placement to the end of attempts, or to now.
    pub held: f64,
    /// The part of it that workers measured; the rest is unknown, not idle.
    pub measured: f64,
    /// Utilization over the measured time: an estimate where a GPU is shared.
    pub busy: f64,
    /// Held while nothing was done for ten minutes or more on end: by readings of the GPU, or where there are
    /// none, from the last progress of an attempt to its end.
    pub idle: f64,
    /// Held by attempts that ended because of a node, a device or a job that had to make room.
    pub lost: f64,
    /// What the same work takes alone.
    pub alone: WorkAlone,
}

/// Seconds that work would have taken on GPUs of its own, by how the slowdown is known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WorkAlone {
    /// It had its GPUs alone.
    pub exclusive: f64,
    /// By its own speed alone and beside others.
    pub measured: f64,
    /// By the slowdown that was predicted when it was placed.
    pub predicted: f64,
    /// The time held, not the work, where no slowdown is known.
    pub unknown: f64,
}

/// How often something waited how long, in buckets whose bounds grow by a tenth.
///
/// A wait below a second counts as none. Any other is known to 5%.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitTimes {
    /// The number of waits in each bucket; those with none are left out.
    pub counts: BTreeMap<u32, u64>,
    /// The sum of all waits in seconds, which is exact.
    pub sum: f64,
}

/// The factor between the bounds of a bucket.
const BUCKET_FACTOR: f64 = 1.1;

impl UsageSums {
    /// Jobs that ended.
    #[must_use]
    pub fn ended_jobs(&self) -> u64 {
        self.jobs.values().sum()
    }

    /// Attempts that ended otherwise than completed, the most frequent cause first.
    #[must_use]
    pub fn failures(&self) -> Vec<(&str, u64)> {
        let failed = self.attempts.iter().filter(|(how, _)| how.as_str() != COMPLETED);
        let mut failures: Vec<(&str, u64)> = failed.map(|(how, count)| (how.as_str(), *count)).collect();
        failures.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        failures
    }

    /// Adds others to these.
    pub fn add(&mut self, other: &UsageSums) {
        for (state, count) in &other.jobs {
            *self.jobs.entry(*state).or_default() += count;
        }
        for (how, count) in &other.attempts {
            *self.attempts.entry(how.clone()).or_default() += count;
        }
        self.waits.add(&other.waits);
        self.amounts = self.amounts.plus(other.amounts);
    }
}

/// How an attempt ended that did what it was to do.
const COMPLETED: &str = "completed";

impl UsageAmounts {
    /// Busy per held, as far as it was measured; nothing where nothing was.
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        (self.measured > 0.0).then(|| self.busy / self.measured)
    }

    /// What the same work takes alone, per time held, as far as slowdowns are known; above 1 where jobs that
    /// share GPUs do more than they would one after the other.
    #[must_use]
    pub fn sharing_efficiency(&self) -> Option<f64> {
        let known = self.held - self.alone.unknown;
        // Sums of the same parts in another order differ by a little.
        (known > 1e-6).then(|| self.alone.total() / known)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: UsageAmounts) -> UsageAmounts {
        UsageAmounts {
            held: self.held + other.held,
            measured: self.measured + other.measured,
            busy: self.busy + other.busy,
            idle: self.idle + other.idle,
            lost: self.lost + other.lost,
            alone: WorkAlone {
                exclusive: self.alone.exclusive + other.alone.exclusive,
                measured: self.alone.measured + other.alone.measured,
                predicted: self.alone.predicted + other.alone.predicted,
                unknown: self.alone.unknown + other.alone.unknown,
            },
        }
    }

    /// This part of them.
    #[must_use]
    pub fn times(self, part: f64) -> UsageAmounts {
        let WorkAlone { exclusive, measured, predicted, unknown } = self.alone;
        UsageAmounts {
            held: self.held * part,
            measured: self.measured * part,
            busy: self.busy * part,
            idle: self.idle * part,
            lost: self.lost * part,
            alone: WorkAlone {
                exclusive: exclusive * part,
                measured: measured * part,
                predicted: predicted * part,
                unknown: unknown * part,
            },
        }
    }
}

impl WorkAlone {
    /// What is known.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.exclusive + self.measured + self.predicted
    }
}

impl WaitTimes {
    /// The bucket of a wait.
    #[must_use]
    pub fn bucket(wait: Span) -> u32 {
        match wait.as_secs_f64() {
            short if short < 1.0 => 0,
            // The longest span is in bucket 317.
            secs => secs.log(BUCKET_FACTOR) as u32 + 1,
        }
    }

    /// Counts a wait.
    pub fn observe(&mut self, wait: Span) {
        *self.counts.entry(WaitTimes::bucket(wait)).or_default() += 1;
        self.sum += wait.as_secs_f64();
    }

    /// Adds others to these.
    pub fn add(&mut self, other: &WaitTimes) {
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_default() += count;
        }
        self.sum += other.sum;
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The mean, which is exact.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        let count = self.count();
        (count > 0).then(|| Span::from_secs_f64(self.sum / count as f64))
    }

    /// The wait that this part of all does not exceed, to 5%.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<Span> {
        let rank = ((self.count() as f64 * part).ceil() as u64).max(1);
        let mut below = 0;
        let found = self.counts.iter().find(|(_, count)| {
            below += **count;
            below >= rank
        });
        found.map(|(bucket, _)| match bucket {
            0 => Span::ZERO,
            bucket => Span::from_secs_f64(BUCKET_FACTOR.powf(f64::from(*bucket) - 0.5)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_merged_waits_are_within_five_percent() {
        let waits: Vec<f64> = (1..=10_000).map(|number| 1.0 + f64::from(number * number % 9_973)).collect();
        let (mut one, mut other) = (WaitTimes::default(), WaitTimes::default());
        for (place, wait) in waits.iter().enumerate() {
            let part = if place % 3 == 0 { &mut one } else { &mut other };
            part.observe(Span::from_secs_f64(*wait));
        }
        one.add(&other);
        let mut sorted = waits.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        for part in [0.01, 0.5, 0.95, 1.0] {
            let exact = sorted[(part * 10_000.0) as usize - 1];
            let found = one.quantile(part).unwrap().as_secs_f64();
            assert!((found / exact - 1.0).abs() < 0.05, "{part}: {found} instead of {exact}");
        }
        let mean = one.mean().unwrap().as_secs_f64();
        assert!((mean - waits.iter().sum::<f64>() / 10_000.0).abs() < 1e-3, "{mean}");
    }

    #[test]
    fn waits_below_a_second_and_the_longest_have_a_bucket() {
        let mut waits = WaitTimes::default();
        assert_eq!((waits.mean(), waits.quantile(0.5)), (None, None));
        waits.observe(Span::from_millis(999));
        assert_eq!(waits.quantile(0.95), Some(Span::ZERO));
        waits.observe(Span::from_micros(u64::MAX));
        assert_eq!(waits.counts.keys().copied().collect::<Vec<_>>(), [0, 321]);
    }

    #[test]
    fn efficiencies_say_nothing_of_what_is_unknown() {
        let held = UsageAmounts { held: 100.0, ..UsageAmounts::default() };
        let unknown = UsageAmounts { alone: WorkAlone { unknown: 100.0, ..WorkAlone::default() }, ..held };
        assert_eq!((unknown.efficiency(), unknown.sharing_efficiency()), (None, None));
        // Two halves of a GPU for 100 s, each slowed down to 1.25.
        let alone = WorkAlone { measured: 80.0, predicted: 80.0, ..WorkAlone::default() };
        let shared = UsageAmounts { measured: 50.0, busy: 40.0, alone, ..held };
        assert_eq!((shared.efficiency(), shared.sharing_efficiency()), (Some(0.8), Some(1.6)));
        assert_eq!(shared.plus(unknown).sharing_efficiency(), Some(1.6));
    }

    #[test]
    fn failures_are_in_the_order_of_their_number() {
        let attempts = [("completed", 9), ("exit_code", 1), ("reclaimed", 3), ("gpu_memory", 1)];
        let attempts = attempts.map(|(how, count)| (how.to_owned(), count)).into();
        let sums = UsageSums { attempts, ..UsageSums::default() };
        assert_eq!(sums.failures(), [("reclaimed", 3), ("exit_code", 1), ("gpu_memory", 1)]);
    }
}

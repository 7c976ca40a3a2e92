//! The run times of the jobs that completed, by what they have in common. Only what is told to people comes
//! from here: plans go by the estimates that jobs got at submission.

use std::collections::{BTreeMap, VecDeque};

use cohabit_types::Span;

use super::estimator::{CompletedRun, JobFeatures};
use super::run_times::{MIN_RUNS, RunTimeDistribution};

/// The newest runs of a class that are remembered: recent ones tell more than all history.
const WINDOW: usize = 20;
/// The most classes; the one whose last run is the oldest makes room.
const MOST_CLASSES: usize = 5_000;
/// Commands that are longer are compared by this many bytes.
const LONGEST_COMMAND: usize = 256;

/// The run times of the newest jobs of each class.
#[derive(Debug, Default, Clone)]
pub struct PastRuns {
    classes: BTreeMap<JobClass, ClassRuns>,
    /// The classes by the number of their last run.
    by_last_run: BTreeMap<u64, JobClass>,
    /// How many runs were ever learned from.
    learned: u64,
}

/// The newest runs of a class, the oldest first.
#[derive(Debug, Default, Clone)]
struct ClassRuns {
    runs: VecDeque<PastRun>,
    /// The number of the last one.
    last: u64,
}

/// User, group, devices in thousandths, model, batch size.
type JobClass = (String, String, u64, Option<String>, Option<u64>);

/// A job that completed.
#[derive(Debug, Clone)]
struct PastRun {
    command: String,
    runtime: Span,
}

/// What is known of the run time of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownRunTimes {
    /// How long such jobs run.
    pub distribution: RunTimeDistribution,
    /// How many runs that rests on.
    pub runs: usize,
    /// The longest of them.
    pub longest: Span,
}

impl PastRuns {
    /// Learns from jobs that completed, the oldest first.
    pub fn learn(&mut self, completed: &[CompletedRun]) {
        for run in completed {
            self.learned += 1;
            let class = class(&run.features);
            self.by_last_run.insert(self.learned, class.clone());
            let known = self.classes.entry(class).or_default();
            self.by_last_run.remove(&std::mem::replace(&mut known.last, self.learned));
            let command = beginning(&run.features.command).to_owned();
            known.runs.push_back(PastRun { command, runtime: run.runtime });
            if known.runs.len() > WINDOW {
                known.runs.pop_front();
            }
            if self.classes.len() > MOST_CLASSES
                && let Some((_, oldest)) = self.by_last_run.pop_first()
            {
                self.classes.remove(&oldest);
            }
        }
    }

    /// What the runs of jobs like this one tell: same user, group, devices, model and batch size, and the
    /// same command. Runs of other commands count where there were several, so that their run times show what
    /// the command changes. `None` where there are too few.
    #[must_use]
    pub fn like(&self, job: &JobFeatures) -> Option<KnownRunTimes> {
        let all = &self.classes.get(&class(job))?.runs;
        let same = || all.iter().filter(|run| run.command == beginning(&job.command));
        let mut commands: Vec<&str> = all.iter().map(|run| run.command.as_str()).collect();
        commands.sort_unstable();
        commands.dedup();
        let runs: Vec<Span> = match same().count() >= MIN_RUNS {
            true => same().map(|run| run.runtime).collect(),
            false if commands.len() >= MIN_RUNS => all.iter().map(|run| run.runtime).collect(),
            false => return None,
        };
        let (count, longest) = (runs.len(), runs.iter().max().copied()?);
        Some(KnownRunTimes { distribution: RunTimeDistribution::of(runs)?, runs: count, longest })
    }
}

fn beginning(command: &str) -> &str {
    &command[..command.floor_char_boundary(LONGEST_COMMAND)]
}

fn class(job: &JobFeatures) -> JobClass {
    (job.user.clone(), job.group.clone(), job.devices_milli, job.model.clone(), job.batch_size)
}

#[cfg(test)]
mod tests {
    use cohabit_types::Time;

    use super::*;

    fn job(command: &str) -> JobFeatures {
        JobFeatures {
            user: "ada".into(),
            group: "a".into(),
            command: command.into(),
            ..JobFeatures::default()
        }
    }

    fn ran(command: &str, secs: u64) -> CompletedRun {
        let runtime = Span::from_secs(secs);
        CompletedRun { features: job(command), ended_at: Time::EPOCH, runtime, iterations: None }
    }

    fn runs(past: &PastRuns, command: &str) -> Option<usize> {
        past.like(&job(command)).map(|known| known.runs)
    }

    #[test]
    fn runs_of_one_other_command_tell_nothing_and_those_of_several_do() {
        let mut past = PastRuns::default();
        past.learn(&[ran("sleep 4", 4), ran("sleep 4", 4), ran("sleep 4", 4), ran("sleep 4", 4)]);
        assert_eq!((runs(&past, "sleep 4"), runs(&past, "sleep 10000")), (Some(4), None));
        past.learn(&[ran("sleep 5", 5)]);
        assert_eq!(runs(&past, "sleep 10000"), None);
        past.learn(&[ran("sleep 6", 6)]);
        assert_eq!((runs(&past, "sleep 4"), runs(&past, "sleep 10000")), (Some(4), Some(6)));
    }

    #[test]
    fn only_the_newest_runs_count() {
        let mut past = PastRuns::default();
        past.learn(&vec![ran("a", 1_000); 30]);
        past.learn(&vec![ran("a", 10); WINDOW]);
        let known = past.like(&job("a")).unwrap();
        let typical = known.distribution.remaining(Span::ZERO).typical.as_secs_f64();
        assert!(known.runs == WINDOW && (typical - 10.0).abs() < 0.1, "{typical}");
    }

    #[test]
    fn of_too_many_classes_the_one_without_a_run_for_the_longest_time_is_forgotten() {
        let mut past = PastRuns::default();
        let of_size = |milli| JobFeatures { devices_milli: milli, ..job("a") };
        let mut learn =
            |milli| past.learn(&vec![CompletedRun { features: of_size(milli), ..ran("a", 1) }; 3]);
        (1..=MOST_CLASSES as u64).for_each(&mut learn);
        learn(1);
        learn(MOST_CLASSES as u64 + 1);
        let is_known = |milli| past.like(&of_size(milli)).is_some();
        assert_eq!([1, 2, 3, MOST_CLASSES as u64 + 1].map(is_known), [true, false, true, true]);
        assert_eq!((past.classes.len(), past.by_last_run.len()), (MOST_CLASSES, MOST_CLASSES));
    }
}

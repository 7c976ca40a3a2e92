//! The run times of the jobs that completed, by what they have in common. Only what is told to people comes
//! from here: plans go by the estimates that jobs got at submission.

use std::collections::{BTreeMap, VecDeque};

use cohabit_types::Span;

use super::estimator::{CompletedRun, JobFeatures};
use super::run_times::{MIN_RUNS, RunTimeDistribution};

/// The newest runs of a class that are remembered: recent ones tell more than all history.
const WINDOW: usize = 20;
/// The most classes; the one that was used longest ago makes room.
const MOST_CLASSES: usize = 5_000;
/// Commands that are longer are compared by this many bytes.
const LONGEST_COMMAND: usize = 256;

/// The run times of the newest jobs of each class.
#[derive(Debug, Default, Clone)]
pub struct PastRuns {
    classes: BTreeMap<JobClass, VecDeque<PastRun>>,
    /// The classes, the one first that had no run for the longest time.
    oldest: VecDeque<JobClass>,
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
            let class = class(&run.features);
            if !self.classes.contains_key(&class) {
                self.make_room();
                self.oldest.push_back(class.clone());
            }
            let runs = self.classes.entry(class).or_default();
            runs.push_back(PastRun {
                command: beginning(&run.features.command).to_owned(),
                runtime: run.runtime,
            });
            if runs.len() > WINDOW {
                runs.pop_front();
            }
        }
    }

    fn make_room(&mut self) {
        if self.classes.len() >= MOST_CLASSES
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.classes.remove(&oldest);
        }
    }

    /// What the runs of jobs like this one tell: same user, group, devices, model and batch size, and the
    /// same command. Runs of other commands count where there were several, so that their run times show what
    /// the command changes. `None` where there are too few.
    #[must_use]
    pub fn like(&self, job: &JobFeatures) -> Option<KnownRunTimes> {
        let all = self.classes.get(&class(job))?;
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
    fn classes_are_bounded() {
        let mut past = PastRuns::default();
        for number in 0..MOST_CLASSES as u64 + 10 {
            let features = JobFeatures { devices_milli: number, ..job("a") };
            past.learn(&[CompletedRun { features, ..ran("a", 1) }]);
        }
        assert_eq!((past.classes.len(), past.oldest.len()), (MOST_CLASSES, MOST_CLASSES));
    }
}

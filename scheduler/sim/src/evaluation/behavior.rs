//! How the jobs of an evaluation behave towards the cluster: which report their progress, which may be
//! stopped, and what a stop costs them.
//!
//! The seed and the number of a job decide, so that a job behaves in the same way under every policy. A
//! larger fraction adds jobs to those of a smaller one.

use std::fmt;
use std::str::FromStr;

use cohabit_types::{JobSpec, Span};

use crate::program::{ProgressReporting, SigtermBehaviour, SimProgram, StartBehaviour};
use crate::random::Random;
use crate::workload::WorkloadJob;

/// How long a job that was told to stop may take in addition to the time of its checkpoint.
const SPARE_GRACE: Span = Span::from_secs(30);

/// How the jobs of an evaluation behave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobBehavior {
    /// The fraction of jobs that report their progress, 0 to 1.
    pub reporting: f64,
    /// The fraction of jobs that policies may stop, 0 to 1.
    pub preemptible: f64,
    /// What it costs a job to be stopped.
    pub stop_cost: StopCost,
}

/// What it costs a job to be stopped. It holds its devices meanwhile and makes no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopCost {
    /// From the signal to the end of the process: how long it saves a checkpoint.
    pub save: Span,
    /// From the start of the next attempt to its first step.
    pub restart: Span,
}

/// A text that is no cost of a stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a cost of stops: write SAVE,RESTART in seconds, for example 15,45")]
pub struct ParseStopCostError(String);

impl Default for JobBehavior {
    fn default() -> JobBehavior {
        JobBehavior { reporting: 0.3, preemptible: 1.0, stop_cost: StopCost::default() }
    }
}

impl Default for StopCost {
    fn default() -> StopCost {
        StopCost { save: Span::from_secs(15), restart: Span::from_secs(45) }
    }
}

impl fmt::Display for StopCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.save.as_secs_f64(), self.restart.as_secs_f64())
    }
}

impl FromStr for StopCost {
    type Err = ParseStopCostError;
    fn from_str(text: &str) -> Result<StopCost, ParseStopCostError> {
        let seconds = |part: &str| {
            let seconds = part.trim().parse().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
            seconds.map(Span::from_secs_f64)
        };
        let costs = text
            .split_once(',')
            .and_then(|(save, restart)| Some(StopCost { save: seconds(save)?, restart: seconds(restart)? }));
        costs.ok_or_else(|| ParseStopCostError(text.to_owned()))
    }
}

impl JobBehavior {
    /// The submitted job, with a program that behaves as the job truly does. `index` is its place in the
    /// order of submission.
    pub(crate) fn submitted(&self, seed: u64, index: usize, job: &WorkloadJob) -> JobSpec {
        let requested = SimProgram::of(&job.spec);
        let reports = match draws(seed, index, "progress", self.reporting) {
            true => ProgressReporting::Adaptive,
            false => ProgressReporting::Never,
        };
        let program = SimProgram {
            steps: job.iterations,
            reports,
            busy: requested.busy,
            gpu_memory: requested.gpu_memory,
            start: StartBehaviour::Succeeds(Span::ZERO),
            on_term: SigtermBehaviour::Checkpoints(self.stop_cost.save),
            restart_duration: self.stop_cost.restart,
            ..SimProgram::working(job.ideal())
        };
        let mut spec = JobSpec { entrypoint: program.job().entrypoint, ..job.spec.clone() };
        spec.preemptible = draws(seed, index, "preemption", self.preemptible);
        spec.stop.grace = spec.stop.grace.max(self.stop_cost.save + SPARE_GRACE);
        spec
    }
}

/// Whether this job is among the given fraction of all.
fn draws(seed: u64, index: usize, property: &str, fraction: f64) -> bool {
    Random::stream(seed, &format!("{property} of job {index}")).fraction() < fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_fraction_adds_jobs_to_a_smaller_one() {
        let drawn = |fraction| -> Vec<bool> {
            (0..2_000).map(|index| draws(7, index, "progress", fraction)).collect()
        };
        let (none, few, many, all) = (drawn(0.0), drawn(0.3), drawn(0.6), drawn(1.0));
        let count = |drawn: &[bool]| drawn.iter().filter(|it| **it).count();
        assert_eq!((count(&none), count(&all)), (0, 2_000));
        assert!((550..650).contains(&count(&few)) && (1_150..1_250).contains(&count(&many)));
        assert!(few.iter().zip(&many).all(|(few, many)| many >= few));
        let other = (0..2_000).map(|index| draws(8, index, "progress", 0.3)).collect::<Vec<_>>();
        assert_ne!(few, other, "another seed draws other jobs");
    }

    #[test]
    fn a_cost_of_stops_is_printed_as_it_is_parsed() {
        assert_eq!(StopCost::default().to_string(), "15,45");
        for text in ["15,45", "1,0", "0.5,600"] {
            assert_eq!(text.parse::<StopCost>().unwrap().to_string(), text);
        }
        for text in ["", "15", "15,", "-1,0", "x,1", "1,2,3", "NaN,1", "1,1e9"] {
            assert!(
                text.parse::<StopCost>().unwrap_err().to_string().contains("for example 15,45"),
                "{text}"
            );
        }
    }
}

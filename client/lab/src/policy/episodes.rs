//! The jobs of an episode: a part of the trace, drawn from the seed.

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_sim::maifs::Coordination;
use cohabit_sim::{Evaluation, Random};

use super::arguments::{LoadRange, PolicyTrainArguments};
use crate::simulate::{FlagContext, Input, WindowDraw, explain_unused};

/// The policy that agents decide for.
const POLICY: &str = "maifs";

/// Draws the episodes of a training.
pub(super) struct Episodes<'a> {
    arguments: &'a PolicyTrainArguments,
    input: Input,
    /// The number of jobs of a trace; `None` for synthetic jobs, which are drawn anew.
    jobs: Option<usize>,
}

/// What an episode is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EpisodePurpose {
    Imitation,
    Learning,
    Validation,
}

impl<'a> Episodes<'a> {
    /// Reads the trace and the tables.
    pub(super) fn read(arguments: &'a PolicyTrainArguments) -> Result<Episodes<'a>, CommandError> {
        let input = Input::read(&arguments.workload)?;
        let (jobs, wanted) = (input.trace_jobs(), arguments.episode_jobs as usize);
        if let Some(jobs) = jobs.filter(|jobs| validation_start(*jobs) < wanted || jobs / 5 < wanted) {
            let message = format!(
                "the trace has {jobs} jobs, too few for episodes of {wanted} and a fifth for validation: give a \
                 longer one, or an --episode-jobs of at most {}",
                jobs / 5
            );
            return Err(CommandError::new(CommandErrorKind::Impossible("too_few_jobs"), message));
        }
        Ok(Episodes { arguments, input, jobs })
    }

    /// Warnings about the input.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.input.remarks()
    }

    /// Sentences on the flags that have no effect on these jobs.
    pub(super) fn unused_flags(&self) -> Result<Vec<String>, CommandError> {
        let drawn = self.input.jobs(self.window(EpisodePurpose::Imitation, 0))?;
        let context = FlagContext::of([POLICY].into_iter(), drawn.gpu_needs());
        let mut warnings = context.unused(&self.arguments.workload);
        let (arguments, behavior) = (self.arguments, &self.arguments.workload.behavior);
        let has_ranges = !self.sensitivities().is_empty();
        let is_single = arguments.coordination == Coordination::Single;
        let no_stops = "maifs stops no job for another";
        let given = [
            (
                "--fixed-shares",
                arguments.fixed_shares && !has_ranges,
                "jobs have no ranges without --sensitivity",
            ),
            (
                "--no-interference-features",
                arguments.no_interference_features && !context.needs.shares,
                "no job may share a GPU",
            ),
            (
                "--no-attention",
                arguments.no_attention && is_single,
                "a single agent has no others to attend to",
            ),
            ("--preemptible", behavior.preemptible.is_some(), no_stops),
            ("--stop-cost", behavior.stop_cost.is_some(), no_stops),
        ];
        warnings.extend(explain_unused(&given));
        Ok(warnings)
    }

    /// The profiles of sensitivity that jobs draw from.
    pub(super) fn sensitivities(&self) -> Vec<String> {
        self.input.sensitivities()
    }

    /// The evaluation that an episode is. The same number and purpose give the same jobs.
    pub(super) fn draw(&self, purpose: EpisodePurpose, number: u32) -> Result<Evaluation, CommandError> {
        let window = self.window(purpose, number);
        let seed = window.seed;
        let drawn = self.input.jobs(window)?;
        let jobs = drawn.jobs().to_vec();
        Ok(self.input.evaluation(POLICY, &drawn, jobs, seed))
    }

    /// The part of the trace that an episode has.
    fn window(&self, purpose: EpisodePurpose, number: u32) -> WindowDraw {
        let mut draws =
            Random::stream(self.arguments.seed, &format!("episode {number} of {}", purpose.as_str()));
        let (seed, wanted) = (draws.between(0, u64::MAX), self.arguments.episode_jobs as usize);
        let LoadRange { from, to } = self.arguments.load;
        let load = from + (to - from) * draws.fraction();
        let start = self.jobs.map_or(0, |jobs| {
            let (first, end) = match purpose {
                EpisodePurpose::Validation => (validation_start(jobs), jobs),
                EpisodePurpose::Imitation | EpisodePurpose::Learning => (0, validation_start(jobs)),
            };
            draws.between(first as u64, (end - wanted) as u64) as usize
        });
        WindowDraw { start, jobs: Some(wanted), load: Some(load), seed }
    }
}

impl EpisodePurpose {
    const fn as_str(self) -> &'static str {
        match self {
            EpisodePurpose::Imitation => "imitation",
            EpisodePurpose::Learning => "learning",
            EpisodePurpose::Validation => "validation",
        }
    }
}

/// The last fifth of a trace is never learned from.
const fn validation_start(jobs: usize) -> usize {
    jobs - jobs / 5
}

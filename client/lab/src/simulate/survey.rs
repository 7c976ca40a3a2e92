//! The jobs of all runs, looked at before any of them starts: their load, what is left out, and whether they
//! may share GPUs.

use cohabit_console::CommandError;

use super::arguments::{Sample, SimulateArguments};
use super::input::{GpuNeeds, Input, SeededWorkload, WindowDraw, no_more_jobs};
use super::left_out::LeftOutJobs;

/// What the jobs of all runs have in common.
#[derive(Debug, Default)]
pub(super) struct WorkloadSurvey {
    /// One for each sample.
    pub(super) samples: Vec<SampleSurvey>,
    /// Jobs of the trace that no run has, for the first seed.
    pub(super) left_out: LeftOutJobs,
    /// How the jobs use GPUs.
    pub(super) needs: GpuNeeds,
}

/// The jobs of a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleSurvey {
    /// The load while they arrive, if all were placed ideally; none if all arrive at once.
    pub(super) load: Option<f64>,
    /// Jobs of the trace that are not among them.
    pub(super) left_out: LeftOutJobs,
}

/// Looks at the jobs of these samples.
///
/// # Errors
/// If a sample has no jobs, or a window fewer than the others.
pub(super) fn survey(
    arguments: &SimulateArguments,
    input: &Input,
    samples: &[Sample],
) -> Result<WorkloadSurvey, CommandError> {
    let mut survey = WorkloadSurvey::default();
    // The jobs of the windows so far: their number, and the place in the trace where they end.
    let (mut window, mut used, mut end) = (None, 0, 0);
    for sample in samples {
        let jobs = jobs_of(arguments, input, *sample)?;
        let needs = jobs.gpu_needs();
        survey.needs.shares |= needs.shares;
        survey.needs.one_gpu |= needs.one_gpu;
        survey.samples.push(SampleSurvey { load: jobs.load, left_out: jobs.left_out });
        if window.replace(sample.window) == Some(sample.window) {
            continue;
        }
        let start = arguments.selection.start_of(sample.window);
        // Windows may overlap.
        let before = end.max(start);
        end = end.max(start + jobs.drawn);
        used += end - before.min(end);
        let LeftOutJobs { too_wide, too_large, .. } = survey.left_out;
        let skipped = arguments.selection.skip.min(jobs.available);
        survey.left_out = LeftOutJobs {
            skipped,
            beyond_limit: jobs.available.saturating_sub(skipped + used),
            too_wide: too_wide + jobs.left_out.too_wide,
            too_large: too_large + jobs.left_out.too_large,
            ..jobs.left_out
        };
    }
    Ok(survey)
}

/// The jobs of a sample.
///
/// # Errors
/// If there are none, or fewer than in the other windows.
pub(super) fn jobs_of(
    arguments: &SimulateArguments,
    input: &Input,
    Sample { window, seed }: Sample,
) -> Result<SeededWorkload, CommandError> {
    let selection = &arguments.selection;
    let (start, wanted) = (selection.start_of(window), selection.jobs_per_window());
    let draw = WindowDraw { start, jobs: wanted, load: arguments.load, seed };
    let jobs = input.jobs(draw)?;
    match wanted {
        Some(wanted) if window > 0 && jobs.drawn < wanted => Err(no_more_jobs(window, jobs.drawn)),
        Some(_) | None => Ok(jobs),
    }
}

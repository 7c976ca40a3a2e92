//! Flags that have no effect beside the other arguments or on these jobs: refused where the command line
//! alone shows it, otherwise told.

use cohabit_console::CommandError;
use cohabit_sim::{EvaluationMetrics, uses_interference, uses_sensitivity};

use super::arguments::{SimulateArguments, TraceSource, Truth, WorkloadArguments};
use super::input::GpuNeeds;
use super::result::SimulationResults;
use super::survey::WorkloadSurvey;

/// Why predictions have no effect.
const NO_PREDICTIONS: &str = "no policy asks for predictions: add one that does, such as hybrid";

/// What decides which flags have an effect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlagContext {
    /// How the jobs use GPUs.
    pub(crate) needs: GpuNeeds,
    /// Whether a policy asks for predicted slowdowns.
    predicts: bool,
    /// Whether a policy tunes cores and host memory.
    tunes: bool,
}

/// Refuses flags about trace files where jobs are synthetic.
///
/// # Errors
/// The first of these flags.
pub(crate) fn check_workload(arguments: &WorkloadArguments) -> Result<(), CommandError> {
    let TraceSource::Synthetic(_) = &arguments.trace else { return Ok(()) };
    let flags = [
        ("--format", arguments.format.is_some()),
        ("--strict", arguments.strict),
        ("--throughputs", arguments.throughputs.is_some()),
    ];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(CommandError::invalid(format!(
            "{flag} is for trace files, and --trace {} makes its own jobs: remove {flag}",
            arguments.trace
        ))),
        None => Ok(()),
    }
}

/// Refuses flags of `simulate` that have no effect beside the others.
///
/// # Errors
/// The first of these flags.
pub(super) fn check(arguments: &SimulateArguments) -> Result<(), CommandError> {
    check_workload(&arguments.workload)?;
    let selection = &arguments.selection;
    if selection.stride.is_some() && selection.windows < 2 {
        let message =
            "--stride is the distance of windows, and there is only one: add --windows 2, or remove --stride";
        return Err(CommandError::invalid(message));
    }
    if arguments.baseline.is_some() && arguments.policy_variants().len() < 2 {
        let message = "--baseline compares with another policy, and only one runs: add another to --policy";
        return Err(CommandError::invalid(message));
    }
    Ok(())
}

impl FlagContext {
    /// Of these policies on jobs that use GPUs like this.
    pub(crate) fn of<'a>(policies: impl Iterator<Item = &'a str> + Clone, needs: GpuNeeds) -> FlagContext {
        FlagContext {
            needs,
            predicts: policies.clone().any(|policy| uses_interference(policy).is_ok_and(|uses| uses)),
            tunes: policies.clone().any(|policy| uses_sensitivity(policy).is_ok_and(|uses| uses)),
        }
    }

    /// Sentences on the flags that have no effect.
    pub(crate) fn unused(self, arguments: &WorkloadArguments) -> Vec<String> {
        let GpuNeeds { shares, one_gpu } = self.needs;
        let (table, model) = match &arguments.interference {
            Truth::Law => (false, false),
            Truth::Table(_) => (true, false),
            Truth::Model(_) => (false, true),
        };
        let predictor = arguments.predictor.is_some();
        let more_sharing = arguments.max_sharing.is_some_and(|most| most > 1);
        let known = arguments.sensitivity.known_sensitivity.is_some();
        let no_sharing = no_sharing(arguments);
        let no_small = "no job needs a single GPU, and only such jobs draw configurations";
        let no_tuning = "no policy tunes cores and memory: add tune=on to one, as in hybrid:tune=on";
        explain_unused(&[
            ("--interference", table && !one_gpu, no_small),
            ("--configurations", arguments.configurations.is_some() && !one_gpu, no_small),
            ("--interference", model && !shares, no_sharing),
            ("--predictor", predictor && !shares, no_sharing),
            ("--predictor", predictor && shares && !self.predicts, NO_PREDICTIONS),
            ("--max-slowdown", arguments.max_slowdown.is_some() && !shares, no_sharing),
            ("--max-sharing", more_sharing && !shares, no_sharing),
            ("--known-sensitivity", known && !self.tunes, no_tuning),
        ])
    }
}

/// Sentences on the flags that are unused, with the reasons.
pub(crate) fn explain_unused(flags: &[(&str, bool, &str)]) -> Vec<String> {
    let unused = flags.iter().filter(|(_, unused, _)| *unused);
    unused.map(|(flag, _, why)| format!("warning: {flag} has no effect: {why}")).collect()
}

/// Why no job shares a GPU.
fn no_sharing(arguments: &WorkloadArguments) -> &'static str {
    match (&arguments.interference, &arguments.configurations) {
        _ if arguments.max_sharing() == 1 => "--max-sharing 1 gives each job its GPUs alone",
        (Truth::Table(_), _) | (Truth::Law | Truth::Model(_), Some(_)) => {
            "no job may share a GPU: none needs a single GPU and leaves memory for others"
        }
        (Truth::Law | Truth::Model(_), None) => {
            "no job may share a GPU: give --configurations FILE or --interference table:FILE, or a trace with gpu_share"
        }
    }
}

/// Sentences on the flags of `simulate` that have no effect, and on loads without an end.
pub(super) fn warnings(arguments: &SimulateArguments, survey: &WorkloadSurvey, devices: u64) -> Vec<String> {
    let variants = arguments.policy_variants();
    let context = FlagContext::of(variants.iter().map(|variant| variant.policy), survey.needs);
    let GpuNeeds { shares, .. } = survey.needs;
    let (learns, no_sharing) = (arguments.learn_online, no_sharing(&arguments.workload));
    let at_once = survey.samples.iter().any(|sample| sample.load.is_none());
    let mut warnings = context.unused(&arguments.workload);
    warnings.extend(explain_unused(&[
        ("--exclusive", !arguments.exclusive.is_empty() && !shares, no_sharing),
        ("--learn-online", learns && !shares, no_sharing),
        ("--learn-online", learns && shares && !context.predicts, NO_PREDICTIONS),
        ("--load", arguments.load.is_some() && at_once, "all jobs are submitted at once"),
    ]));
    warnings.extend(overload(survey, devices));
    warnings
}

/// Loads from here on are above 1, whatever the rounding.
const OVERLOAD: f64 = 1.000_5;

/// A sentence on loads above 1.
fn overload(survey: &WorkloadSurvey, devices: u64) -> Option<String> {
    let loads = || survey.samples.iter().filter_map(|it| it.load).filter(|load| *load >= OVERLOAD);
    let most = loads().reduce(f64::max)?;
    let (count, of) = (loads().count(), survey.samples.len());
    let place = if of == 1 { String::new() } else { format!(" in {count} of {of} windows and seeds") };
    let enough = (most * devices as f64).ceil();
    Some(format!(
        "warning: the offered load is {most:.2}{place}: the jobs need more than the {devices} GPUs while they arrive, so \
         the queue grows without bound, and mean waits and JCTs depend on the length of the trace. Give --load 0.9, or \
         a --cluster of more than {enough} GPUs"
    ))
}

/// Sentences on flags about stops, if no policy stopped a job.
pub(super) fn unused_stops(arguments: &SimulateArguments, outcomes: &SimulationResults) -> Vec<String> {
    let stops = |metrics: &EvaluationMetrics| metrics.preemptions;
    if outcomes.runs.iter().any(|run| stops(run.metrics()) > 0) {
        return Vec::new();
    }
    let behavior = &arguments.workload.behavior;
    let flags = [
        ("--preemptible", behavior.preemptible.is_some_and(|part| part > 0.0)),
        ("--stop-cost", behavior.stop_cost.is_some()),
    ];
    let given = flags.into_iter().filter(|(_, given)| *given);
    given.map(|(flag, _)| format!("warning: {flag} had no effect: no policy stopped a job")).collect()
}

//! Flags that have no effect beside the other arguments or on these jobs: refused where the command line alone
//! shows it, otherwise told.

use cohabit_console::CommandError;
use cohabit_sim::{EvaluationMetrics, uses_interference, uses_sensitivity};

use super::arguments::{SimulateArguments, TraceSource, Truth, WorkloadArguments};
use super::result::SimulationResults;
use super::survey::WorkloadSurvey;

/// What decides which flags have an effect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlagContext {
    /// Whether a job may share its GPU.
    pub(crate) shares: bool,
    /// Whether a policy asks for predicted slowdowns.
    pub(crate) predicts: bool,
    /// Whether a policy tunes cores and host memory.
    pub(crate) tunes: bool,
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
    /// Of these policies on jobs that may share their GPUs or not.
    pub(crate) fn of<'a>(policies: impl Iterator<Item = &'a str> + Clone, shares: bool) -> FlagContext {
        FlagContext {
            shares,
            predicts: policies.clone().any(|policy| uses_interference(policy).is_ok_and(|uses| uses)),
            tunes: policies.clone().any(|policy| uses_sensitivity(policy).is_ok_and(|uses| uses)),
        }
    }

    /// Sentences on the flags that have no effect.
    pub(crate) fn unused(self, arguments: &WorkloadArguments) -> Vec<String> {
        let without_sharing = [
            ("--interference", arguments.interference != Truth::Law),
            ("--configurations", arguments.configurations.is_some()),
            ("--predictor", arguments.predictor.is_some()),
            ("--max-slowdown", arguments.max_slowdown.is_some()),
            ("--max-sharing", arguments.max_sharing.is_some_and(|most| most > 1)),
        ];
        let why = no_sharing(arguments);
        let without_sharing = self.because(!self.shares, &without_sharing, why);
        let predictor = [("--predictor", self.shares && arguments.predictor.is_some())];
        let no_predictor = "no policy asks for predictions: add one that does, such as hybrid";
        let known = [("--known-sensitivity", arguments.sensitivity.known_sensitivity.is_some())];
        let no_tuning = "no policy tunes cores and memory: add tune=on to one, as in hybrid:tune=on";
        without_sharing
            .into_iter()
            .chain(self.because(!self.predicts, &predictor, no_predictor))
            .chain(self.because(!self.tunes, &known, no_tuning))
            .collect()
    }

    fn because(self, applies: bool, flags: &[(&str, bool)], why: &str) -> Vec<String> {
        let unused = flags.iter().filter(|(_, given)| applies && *given);
        unused.map(|(flag, _)| format!("warning: {flag} has no effect: {why}")).collect()
    }
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
    let context = FlagContext::of(variants.iter().map(|variant| variant.policy), survey.shares);
    let mut warnings = context.unused(&arguments.workload);
    let mut unused = |flag: &str, given: bool, why: &str| {
        if given {
            warnings.push(format!("warning: {flag} has no effect: {why}"));
        }
    };
    let no_sharing = no_sharing(&arguments.workload);
    unused("--exclusive", !arguments.exclusive.is_empty() && !context.shares, no_sharing);
    unused("--learn-online", arguments.learn_online && !context.shares, no_sharing);
    let no_predictions = "no policy asks for predictions: add one that does, such as hybrid";
    unused("--learn-online", arguments.learn_online && context.shares && !context.predicts, no_predictions);
    let at_once = arguments.load.is_some() && survey.samples.iter().any(|it| it.load.is_none());
    unused("--load", at_once, "all jobs are submitted at once");
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

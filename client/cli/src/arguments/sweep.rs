//! Arguments of `sweep`, `sweep show` and `sweep resume`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use cohabit_client::types::{JobRef, SweepGoal};
use cohabit_console::{DisplayArguments, OutputFormat};
use cohabit_job_arguments::{COMMON, JobArguments, ORDER};

use super::connection::ConnectionArguments;
use super::submission::SubmissionArguments;
use crate::completion;
use crate::sweep::{ParameterDomain, RuleName, RuleSettings, SweepMethod, SweepParameters, SweepSettings};
use crate::sweep::{parse_member, parse_parameter};

/// The headings of flags that only sweeps have.
const PARAMETERS: &str = "SweepParameters";
const EARLY: &str = "Early stopping";

// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, args_override_self = true)]
pub(crate) struct SweepArguments {
    #[command(subcommand)]
    pub(crate) verb: Option<SweepVerb>,
    #[command(flatten)]
    pub(crate) submission: SweepSubmitArguments,
}

// Commands on sweeps that were submitted.
#[derive(Debug, Subcommand)]
pub(crate) enum SweepVerb {
    /// Show the members of a sweep: parameters, state, steps and metrics
    Show(SweepShowArguments),
    /// Go on stopping members of a sweep early, as it was submitted
    Resume(SweepResumeArguments),
}

// Arguments of `sweep` itself.
#[derive(Debug, Args)]
pub(crate) struct SweepSubmitArguments {
    /// File with the parameters, the rule for early stopping and flags of the job, as docs/SWEEPS.md says
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: Option<PathBuf>,
    /// Program and arguments, after `--`; {lr} stands for the value of the parameter lr, and {{ and }} for
    /// braces
    #[arg(value_name = "CMD", last = true)]
    pub(crate) command: Vec<String>,
    /// Run all combinations of the values of these parameters: lr=0.1,0.01, seed=1..3, lr=log:1e-5..1e-1:5
    #[arg(help_heading = PARAMETERS, long, value_name = "NAME=VALUES", value_parser = parse_parameter)]
    #[arg(conflicts_with_all = ["random", "list"])]
    grid: Vec<(String, ParameterDomain)>,
    /// Draw values of these parameters: lr=log:1e-5..1e-1, p=0.0..0.5, layers=2..8, net=resnet,vgg
    #[arg(help_heading = PARAMETERS, long, value_name = "NAME=VALUES", value_parser = parse_parameter)]
    #[arg(conflicts_with = "list")]
    random: Vec<(String, ParameterDomain)>,
    /// Run a member with these parameters: lr=0.1,seed=1
    #[arg(help_heading = PARAMETERS, long, value_name = "NAME=VALUE,…", value_parser = parse_member)]
    list: Vec<SweepParameters>,
    /// Number of members to draw
    #[arg(help_heading = PARAMETERS, long, value_name = "COUNT")]
    samples: Option<u64>,
    /// Seed of the draws; the same seed draws the same values [default: another one each time]
    #[arg(help_heading = PARAMETERS, long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Metric that members report and by which they are compared, such as loss
    #[arg(help_heading = EARLY, long, value_name = "NAME")]
    metric: Option<String>,
    /// Which values of the metric are better [default: min]
    #[arg(help_heading = EARLY, long, value_enum, value_name = "GOAL")]
    goal: Option<GoalArgument>,
    /// Rule by which members are stopped early, while this command runs
    #[arg(help_heading = EARLY, long, value_enum, value_name = "RULE")]
    early_stop: Option<RuleArgument>,
    /// Stop no member before this step; of asha, the step of the first rung [default: median 0, asha 1]
    #[arg(help_heading = EARLY, long, value_name = "STEP")]
    early_stop_grace: Option<u64>,
    /// Reduction factor of asha: each rung keeps one of so many members [default: 4]
    #[arg(help_heading = EARLY, long, value_name = "FACTOR")]
    early_stop_eta: Option<u32>,
    /// Number of rungs of asha, at the steps grace, grace·eta, grace·eta², … [default: 5]
    #[arg(help_heading = EARLY, long, value_name = "COUNT")]
    early_stop_rungs: Option<u32>,
    /// Number of members that must have completed before median stops others [default: 3]
    #[arg(help_heading = EARLY, long, value_name = "COUNT")]
    early_stop_completed: Option<u32>,
    /// Submit the sweep only, and stop no member early; `sweep resume` does that later
    #[arg(help_heading = COMMON, long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) job: JobArguments,
    /// Check the sweep, show its first commands and where members would run, and submit nothing
    #[arg(help_heading = COMMON, long)]
    dry_run: bool,
    /// Key of this submission; submitting again with the same key creates no second job
    #[arg(help_heading = ORDER, long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

/// Which values of a metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GoalArgument {
    /// The smaller ones
    Min,
    /// The larger ones
    Max,
}

/// A rule that stops members early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RuleArgument {
    /// Stop members whose best is worse than the median of the averages of completed members
    Median,
    /// Keep one of eta members at each rung
    Asha,
}

impl SweepSubmitArguments {
    /// What the flags say of the sweep.
    pub(crate) fn settings(&self) -> SweepSettings {
        let method = match (self.grid.is_empty(), self.random.is_empty(), self.list.is_empty()) {
            (false, _, _) => Some(SweepMethod::Grid),
            (_, false, _) => Some(SweepMethod::Random),
            (_, _, false) => Some(SweepMethod::List),
            (true, true, true) => None,
        };
        SweepSettings {
            method,
            parameters: self.grid.iter().chain(&self.random).cloned().collect(),
            members: self.list.clone(),
            samples: self.samples,
            seed: self.seed,
            metric: self.metric.clone(),
            goal: self.goal.map(|goal| match goal {
                GoalArgument::Min => SweepGoal::Min,
                GoalArgument::Max => SweepGoal::Max,
            }),
            rule: RuleSettings {
                rule: self.early_stop.map(|rule| match rule {
                    RuleArgument::Median => RuleName::Median,
                    RuleArgument::Asha => RuleName::Asha,
                }),
                grace: self.early_stop_grace,
                eta: self.early_stop_eta,
                rungs: self.early_stop_rungs,
                completed: self.early_stop_completed,
            },
        }
    }

    /// The submission of the array.
    pub(crate) fn into_submission(self) -> SubmissionArguments {
        SubmissionArguments {
            command: self.command,
            job: self.job,
            dry_run: self.dry_run,
            idempotency_key: self.idempotency_key,
            connection: self.connection,
            display: self.display,
        }
    }
}

// Arguments of `sweep show`.
#[derive(Debug, Args)]
pub(crate) struct SweepShowArguments {
    /// Sweep: its number, its name, or `last`, your newest sweep
    #[arg(value_name = "SWEEP", default_value = "last", add = ArgValueCompleter::new(completion::recent_jobs))]
    pub(crate) sweep: JobRef,
    /// Sort by a metric, a parameter, id, state or step [default: the metric of the sweep, or id]
    #[arg(long, value_name = "KEY")]
    pub(crate) sort: Option<String>,
    /// Sort the other way round
    #[arg(long)]
    pub(crate) reverse: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    /// Output format; with json, errors on stderr are JSON as well
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Display")]
    pub(crate) output: SweepOutput,
}

/// An output format of `sweep show`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepOutput {
    /// A table
    #[default]
    Table,
    /// One JSON document
    Json,
    /// A line for each member, with commas
    Csv,
}

// Arguments of `sweep resume`.
#[derive(Debug, Args)]
pub(crate) struct SweepResumeArguments {
    /// Sweep: its number, its name, or `last`, your newest sweep
    #[arg(value_name = "SWEEP", add = ArgValueCompleter::new(completion::live_jobs))]
    pub(crate) sweep: JobRef,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

impl SweepArguments {
    /// The format of errors.
    pub(crate) fn format(&self) -> OutputFormat {
        match &self.verb {
            Some(SweepVerb::Show(arguments)) => match arguments.output {
                SweepOutput::Json => OutputFormat::Json,
                SweepOutput::Table | SweepOutput::Csv => OutputFormat::Table,
            },
            Some(SweepVerb::Resume(arguments)) => arguments.display.output,
            None => self.submission.display.output,
        }
    }
}

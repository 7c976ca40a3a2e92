//! Arguments of `report`.

#[cfg(feature = "simulate")]
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;
use cohabit_client::types::{JobRef, Span, UsageGrouping};
use cohabit_console::{DisplayArguments, OutputFormat};

use super::connection::ConnectionArguments;
use crate::completion;
use crate::values::{self, ReportTime};

// Arguments of `report`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ReportArguments {
    #[command(subcommand)]
    pub(crate) verb: Option<ReportVerb>,
    #[command(flatten)]
    pub(crate) sums: ReportSumsArguments,
}

// Reports on jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum ReportVerb {
    /// Show what a job did with what it held, and what would help
    Job(ReportJobArguments),
    /// List running jobs that hold GPUs and have done nothing for ten minutes or more
    Idle(ReportIdleArguments),
}

// Arguments of `report` without a command.
#[derive(Debug, Args)]
pub(crate) struct ReportSumsArguments {
    /// What has a row: user, project, or project,user
    #[arg(long, value_name = "WHAT", default_value = "user", value_parser = values::parse_grouping)]
    pub(crate) by: UsageGrouping,
    /// Report on the last days up to now [default: 30d]
    #[arg(long, value_name = "TIME", value_parser = values::parse_duration)]
    #[arg(conflicts_with_all = ["since", "until"])]
    pub(crate) last: Option<Span>,
    /// Begin with the day of this time: 2026-11-01, or 30d for 30 days ago
    #[arg(long, value_name = "TIME", value_parser = values::parse_report_time)]
    pub(crate) since: Option<ReportTime>,
    /// End with the day of this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = values::parse_report_time, requires = "since")]
    pub(crate) until: Option<ReportTime>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: ReportOutput,
    /// Also write a page with charts into this file
    #[cfg(feature = "simulate")]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

impl ReportArguments {
    /// The output format of results and errors.
    pub(super) fn format(&self) -> OutputFormat {
        match &self.verb {
            Some(ReportVerb::Job(arguments)) => arguments.display.output,
            Some(ReportVerb::Idle(arguments)) => arguments.display.output,
            None => match self.sums.output {
                ReportOutput::Json => OutputFormat::Json,
                ReportOutput::Table | ReportOutput::Csv => OutputFormat::Table,
            },
        }
    }
}

/// An output format of `report`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportOutput {
    /// A table
    #[default]
    Table,
    /// One JSON document
    Json,
    /// A line for each row, with commas
    Csv,
}

// Arguments of `report job`.
#[derive(Debug, Args)]
pub(crate) struct ReportJobArguments {
    /// Job: its number, its name, or `last`
    #[arg(value_name = "JOB", add = ArgValueCompleter::new(completion::live_jobs))]
    pub(crate) job: JobRef,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `report idle`.
#[derive(Debug, Args)]
pub(crate) struct ReportIdleArguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

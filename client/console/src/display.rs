//! How results are shown.

use clap::{Args, ValueEnum};

// The flag of every command that shows something.
#[derive(Debug, Default, Clone, Copy, Args)]
pub struct DisplayArguments {
    /// How to show the result; with json, errors are JSON too, on stderr
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Display")]
    pub output: OutputFormat,
}

/// How results are shown.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people
    #[default]
    Table,
    /// For people with wide screens
    Wide,
    /// One JSON document
    Json,
    /// Ids only, a line each
    Quiet,
}

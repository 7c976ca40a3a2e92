//! The flag --output.

use clap::{Args, ValueEnum};

// The flag of every command that prints a result.
#[derive(Debug, Default, Clone, Copy, Args)]
pub struct DisplayArguments {
    /// Output format; with json, errors on stderr are JSON as well
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Display")]
    pub output: OutputFormat,
}

/// An output format.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A table
    #[default]
    Table,
    /// A table with more columns
    Wide,
    /// One JSON document
    Json,
    /// Ids only, one per line
    Quiet,
}

//! Arguments of `slurm-shims`, and of the programs that it writes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

// Arguments of `slurm-shims`.
#[derive(Debug, Args)]
pub(crate) struct SlurmShimsArguments {
    /// Directory for the programs sbatch, squeue, scancel and sinfo, which call this program
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

// Arguments of `slurm`.
#[derive(Debug, Args)]
pub(crate) struct SlurmArguments {
    /// Program of Slurm
    #[arg(value_enum)]
    pub(crate) program: SlurmProgram,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// A program of Slurm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SlurmProgram {
    /// Submit a script
    Sbatch,
    /// List jobs
    Squeue,
    /// Cancel jobs
    Scancel,
    /// List nodes
    Sinfo,
}

impl SlurmProgram {
    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            SlurmProgram::Sbatch => "sbatch",
            SlurmProgram::Squeue => "squeue",
            SlurmProgram::Scancel => "scancel",
            SlurmProgram::Sinfo => "sinfo",
        }
    }
}

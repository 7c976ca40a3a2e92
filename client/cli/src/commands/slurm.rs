//! `slurm`: what the programs `sbatch`, `squeue`, `scancel` and `sinfo` do, with Slurm's options, columns and
//! messages. Options that are not known are errors that say what to use.

mod queue_rows;
mod sbatch;
mod scancel;
mod sinfo;
mod squeue;
mod words;

use std::process::ExitCode;

use cohabit_console::{CommandError, output};

use crate::arguments::{SlurmArguments, SlurmProgram};

pub(super) async fn slurm(arguments: SlurmArguments) -> Result<ExitCode, CommandError> {
    let SlurmArguments { program, words } = arguments;
    if words.iter().any(|word| word == "--help" || word == "--usage") {
        let name = program.name();
        output::print_text(&format!(
            "{name} of Cohabit: takes the options of Slurm's {name} that it knows; see docs/OPERATIONS.md, \"Slurm scripts\""
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if words.iter().any(|word| word == "--version" || word == "-V") {
        output::print_text(&format!("cohabit {}", env!("CARGO_PKG_VERSION")))?;
        return Ok(ExitCode::SUCCESS);
    }
    match program {
        SlurmProgram::Sbatch => sbatch::sbatch(&words).await,
        SlurmProgram::Squeue => squeue::squeue(&words).await,
        SlurmProgram::Scancel => scancel::scancel(&words).await,
        SlurmProgram::Sinfo => sinfo::sinfo(&words).await,
    }
}

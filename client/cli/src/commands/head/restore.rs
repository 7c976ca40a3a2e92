//! `head restore`: makes a state directory from a backup.

use std::process::ExitCode;

use cohabit_client::types::quoted_command;
use cohabit_console::{CommandError, output, with_schema};
use cohabit_head::{RestoreSummary, restore_backup};
use serde::Serialize;

use super::failure::backup_failure;
use crate::arguments::{HeadRestoreArguments, OutputFormat};

/// `{"state", "cluster", "created_at", "jobs", "last_job", "next_job"}`.
#[derive(Serialize)]
struct RestoreDocument {
    state: String,
    cluster: String,
    created_at: String,
    jobs: u64,
    last_job: u64,
    next_job: u64,
}

pub(super) fn restore(arguments: &HeadRestoreArguments) -> Result<ExitCode, CommandError> {
    let restored = restore_backup(&arguments.file, &arguments.state).map_err(backup_failure)?;
    print(restored, arguments.display.output)?;
    Ok(ExitCode::SUCCESS)
}

fn print(restored: RestoreSummary, format: OutputFormat) -> Result<(), CommandError> {
    let RestoreSummary { state, cluster, created_at, jobs, last_job, next_job } = restored;
    let state = state.display().to_string();
    match format {
        OutputFormat::Json => output::print_document(&with_schema(RestoreDocument {
            state,
            cluster,
            created_at,
            jobs,
            last_job,
            next_job,
        })),
        OutputFormat::Quiet => output::print_text(&next_job.to_string()),
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&format!(
            "Restored the backup of {created_at}, with {jobs} jobs in memory and numbers up to {last_job}. The next job is \
             {next_job}: no number is given again that may have been given since\n\
             To go on: cohabit head start --state {}",
            quoted_command([state.as_str()])
        )),
    }
}

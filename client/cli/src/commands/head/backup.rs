//! `head backup`: saves the state of a head in one file.

use std::process::ExitCode;

use cohabit_client::types::quoted_command;
use cohabit_console::{CommandError, output, with_schema};
use cohabit_head::{BackupSummary, ExistingFile, back_up};
use serde::Serialize;

use super::failure::backup_failure;
use crate::arguments::{HeadBackupArguments, OutputFormat};
use crate::config::{RawSettings, SettingKey, read_settings};
use crate::endpoint::{path_flag, state_directory};

/// `{"file", "bytes", "files", "cluster", "jobs", "last_job", "restore"}`; `restore` is the command.
#[derive(Serialize)]
struct BackupDocument {
    file: String,
    bytes: u64,
    files: u64,
    cluster: String,
    jobs: u64,
    last_job: u64,
    restore: String,
}

pub(super) fn backup(arguments: &HeadBackupArguments) -> Result<ExitCode, CommandError> {
    let flags: RawSettings = path_flag(SettingKey::State, arguments.state.as_deref())?.into_iter().collect();
    let state = state_directory(&read_settings(flags)?)?;
    let existing = if arguments.force { ExistingFile::Replace } else { ExistingFile::Keep };
    let made = back_up(&state, &arguments.file, existing).map_err(backup_failure)?;
    print(made, arguments.display.output)?;
    Ok(ExitCode::SUCCESS)
}

fn print(made: BackupSummary, format: OutputFormat) -> Result<(), CommandError> {
    let file = made.file.display().to_string();
    let restore = format!("cohabit head restore {} --state DIR", quoted_command([file.as_str()]));
    let BackupSummary { bytes, files, cluster, jobs, last_job, .. } = made;
    match format {
        OutputFormat::Json => output::print_document(&with_schema(BackupDocument {
            file,
            bytes: bytes.0,
            files,
            cluster,
            jobs,
            last_job,
            restore,
        })),
        OutputFormat::Quiet => output::print_text(&file),
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&format!(
            "Saved {file}: {bytes} in {files} files, with {jobs} jobs in memory; the highest number is {last_job}\n\
             To restore it: {restore}"
        )),
    }
}

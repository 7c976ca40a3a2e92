//! Submissions, described by the flags of the command line.

use clap::Parser;
use cohabit_client::types::{Array, Dependency, JobSpec};
use cohabit_client::{Client, CodeFolder, FileSelection, Submission};
use cohabit_console::{CommandError, usage_message};
use cohabit_job_arguments::{JobArguments, SnapshotArgument, SubmitContext, specify};
use cohabit_settings::{SettingKey, Settings};
use serde::Serialize;

use crate::answer::NativeAnswer;

/// The flags of a job and of its submission, and its command.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, args_override_self = true)]
struct SubmitFlags {
    #[command(flatten)]
    job: JobArguments,
    #[arg(long)]
    idempotency_key: Option<String>,
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

/// `{"id", "name", "members", "notes"}`
#[derive(Debug, Serialize)]
struct SubmissionDocument {
    id: String,
    name: String,
    /// How many members an array has.
    members: Option<u64>,
    /// What the head has to say about it.
    notes: Vec<String>,
}

/// Submits the job that these flags and this command describe, after its code.
pub(crate) async fn submit(
    client: &Client,
    settings: &Settings,
    arguments: Vec<String>,
) -> Result<NativeAnswer, CommandError> {
    let flags = SubmitFlags::try_parse_from(arguments)
        .map_err(|error| CommandError::invalid(usage_message(&error)))?;
    let described = specify(&flags.job, flags.command, None, &SubmitContext::current()?)?;
    let code = match selection(flags.job.snapshot, settings)? {
        Some(selection) => Some(CodeFolder::scan(&described.workdir, selection).await?),
        None => None,
    };
    let mut depends_on = Vec::new();
    for dependency in &flags.job.depends_on {
        let jobs = client.resolve(std::slice::from_ref(&dependency.job)).await?;
        depends_on.extend(jobs.into_iter().map(|job| Dependency { job, when: dependency.when }));
    }
    let spec = JobSpec { depends_on, ..described };
    let (name, members) = (spec.name.clone(), spec.array.as_ref().map(Array::len));
    let submission = Submission::new(spec)?;
    let submission = match flags.idempotency_key {
        Some(key) => submission.with_key(key),
        None => submission,
    };
    let job = match &code {
        Some(code) => client.submit_with_code(&submission, code).await?.0,
        None => client.submit(&submission).await?,
    };
    let notes = job.notes().to_vec();
    NativeAnswer::document(&SubmissionDocument { id: job.id().to_string(), name, members, notes })
}

/// Which files of the working directory the job gets a copy of.
fn selection(
    flag: Option<SnapshotArgument>,
    settings: &Settings,
) -> Result<Option<FileSelection>, CommandError> {
    let chosen = match (flag, settings.find(SettingKey::Snapshot)) {
        (Some(chosen), _) => chosen,
        (None, Some(setting)) => setting.check(SnapshotArgument::parse)?,
        (None, None) => SnapshotArgument::No,
    };
    Ok(match chosen {
        SnapshotArgument::Git => Some(FileSelection::Git),
        SnapshotArgument::All => Some(FileSelection::All),
        SnapshotArgument::No => None,
    })
}

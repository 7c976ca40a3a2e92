//! `code`: shows how the files of a directory differ from the code that a job was submitted with, or writes
//! that code into a directory.

mod comparison;
mod extraction;
mod stored_code;

use std::process::ExitCode;

use cohabit_client::types::JobRecord;
use cohabit_console::{CommandError, CommandErrorKind};

use self::stored_code::StoredCode;
use super::job_reference::resolve_one;
use crate::arguments::CodeArguments;
use crate::endpoint::connect;

pub(super) async fn code(arguments: CodeArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let job = resolve_one(&client, &arguments.job).await?;
    let record = client.job(job).record().await?;
    let Some(snapshot) = record.code.clone() else { return Err(no_snapshot(&record)) };
    let manifest = client.code_manifest(job, &snapshot).await?;
    let code = StoredCode { client, job, snapshot, manifest };
    match &arguments.extract {
        Some(folder) => extraction::extract(&code, folder, arguments.display.output).await?,
        None => comparison::compare(&code, &arguments).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn no_snapshot(job: &JobRecord) -> CommandError {
    CommandError::new(
        CommandErrorKind::NotFound,
        format!("job {} was submitted without --snapshot: it runs in {} as that is", job.id, job.workdir),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::pending;

    #[test]
    fn a_job_without_a_snapshot_runs_in_its_directory() {
        let failure = no_snapshot(&pending());
        assert_eq!(failure.kind, CommandErrorKind::NotFound);
        let expected = "job 14 was submitted without --snapshot: it runs in /home/ada as that is";
        assert_eq!(failure.message, expected);
    }
}

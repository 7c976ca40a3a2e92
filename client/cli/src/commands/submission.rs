//! Turns the arguments of `submit` and `run` into a job that can be submitted.

use std::io::{self, IsTerminal};

use cohabit_client::types::{Bytes, Dependency, Entrypoint, JobInput, JobSpec, counted};
use cohabit_client::{Client, CodeFolder, CodeUpload, JobHandle, Submission};
use cohabit_console::{CommandError, output};
use cohabit_job_arguments::{SubmitContext, specify};

use super::snapshot::{check_program, scan_code};
use super::terminal::terminal_variables;
use crate::arguments::SubmissionArguments;
use crate::script::Script;
use crate::values::DependencyArgument;

/// An upload of more than this is mentioned.
const SMALL_UPLOAD: Bytes = Bytes(1 << 20);

/// A job that can be submitted.
pub(super) struct PreparedJob {
    pub(super) submission: Submission,
    /// The code that it is to run in a snapshot of, not uploaded yet.
    code: Option<CodeFolder>,
}

impl PreparedJob {
    /// Submits it, after its code.
    pub(super) async fn submit(&self, client: &Client) -> Result<JobHandle, CommandError> {
        let Some(code) = &self.code else {
            let job = client.submit(&self.submission).await?;
            print_notes(&job);
            return Ok(job);
        };
        let (job, upload) = client.submit_with_code(&self.submission, code).await?;
        print_notes(&job);
        if upload.bytes > SMALL_UPLOAD && io::stderr().is_terminal() {
            output::print_message(&describe_upload(&upload));
        }
        Ok(job)
    }
}

fn print_notes(job: &JobHandle) {
    for note in job.notes() {
        output::print_message(&format!("note on job {}: {note}", job.id()));
    }
}

fn describe_upload(upload: &CodeUpload) -> String {
    let all = counted(upload.snapshot.files, "file", "files");
    format!("Uploaded {} of {all} ({})", upload.files, upload.bytes)
}

/// The job that the arguments describe, with this input unless it is an array, of which none may be sent. The
/// head resolves its dependencies.
pub(super) async fn prepare(
    client: &Client,
    arguments: SubmissionArguments,
    script: Option<Script>,
    input: JobInput,
) -> Result<PreparedJob, CommandError> {
    prepare_as(client, arguments, script, |spec| {
        let input = if spec.array.is_some() && input == JobInput::Sent { JobInput::Empty } else { input };
        let interactive = input.terminal().is_some();
        let spec = if interactive { with_terminal(spec) } else { spec };
        JobSpec { input, interactive, ..spec }
    })
    .await
}

/// The same with a last change of the specification.
pub(super) async fn prepare_as(
    client: &Client,
    arguments: SubmissionArguments,
    script: Option<Script>,
    change: impl FnOnce(JobSpec) -> JobSpec,
) -> Result<PreparedJob, CommandError> {
    if let Some(script) = &script {
        for line in script.late_directives() {
            output::print_message(&format!(
                "note: the directive in line {line} of the script is ignored, because it follows the first command"
            ));
        }
    }
    let described = specify(
        &arguments.job,
        arguments.command,
        script.map(Script::into_text),
        &SubmitContext::current()?,
    )?;
    let code = scan_code(&arguments.connection, arguments.job.snapshot, &described.workdir).await?;
    let described = match &code {
        Some(code) => with_code(described, code)?,
        None => described,
    };
    let depends_on = dependencies(client, &arguments.job.depends_on).await?;
    let submission = Submission::new(change(JobSpec { depends_on, ..described }))?;
    let submission = match arguments.idempotency_key {
        Some(key) => submission.with_key(key),
        None => submission,
    };
    Ok(PreparedJob { submission, code })
}

/// The job in a snapshot of this code. A program in the code must be part of it; the text of a script travels
/// with the job.
fn with_code(spec: JobSpec, code: &CodeFolder) -> Result<JobSpec, CommandError> {
    if let Entrypoint::Command(command) = &spec.entrypoint
        && let (Some(program), None) = (command.argv.first(), &command.script)
    {
        check_program(code, program)?;
    }
    Ok(JobSpec { workdir: code.workdir().to_owned(), code: Some(code.snapshot()), ..spec })
}

/// The job, which knows what kind of terminal the person has.
fn with_terminal(mut spec: JobSpec) -> JobSpec {
    for (name, value) in terminal_variables() {
        spec.environment.entry(name).or_insert(value);
    }
    spec
}

/// A reference may name several jobs, each of which has to end.
async fn dependencies(
    client: &Client,
    written: &[DependencyArgument],
) -> Result<Vec<Dependency>, CommandError> {
    let mut dependencies = Vec::new();
    for dependency in written {
        let jobs = client.resolve(std::slice::from_ref(&dependency.job)).await?;
        dependencies.extend(jobs.into_iter().map(|job| Dependency { job, when: dependency.when }));
    }
    Ok(dependencies)
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{CodeSnapshot, ContentHash};

    use super::*;

    #[test]
    fn an_upload_is_described_in_one_line() {
        let (manifest, folder) = (ContentHash([0; 32]), "/home/ada/net".to_owned());
        let snapshot = CodeSnapshot { manifest, folder, files: 412, bytes: Bytes(9 << 20) };
        let upload = CodeUpload { snapshot, files: 3, bytes: Bytes((21 << 20) / 10) };
        assert_eq!(describe_upload(&upload), "Uploaded 3 of 412 files (2.1 MiB)");
    }
}

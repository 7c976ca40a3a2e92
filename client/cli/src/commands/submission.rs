//! What `submit` and `run` have in common: from arguments to a job that can be submitted.

use cohabit_client::proto::{Dependency, JobSpec};
use cohabit_client::{Client, Submission};
use cohabit_console::{CommandError, output};

use crate::arguments::SubmissionArguments;
use crate::job_spec::{SubmitContext, specify};
use crate::script::Script;
use crate::values::DependencyArgument;

/// The job that the arguments describe, with its dependencies looked up at the head.
pub(super) async fn prepare(
    client: &Client,
    arguments: SubmissionArguments,
    script: Option<Script>,
) -> Result<Submission, CommandError> {
    if let Some(script) = &script {
        for line in script.late_directives() {
            output::print_message(&format!(
                "note: line {line} of the script is not read, because it stands behind the first command"
            ));
        }
    }
    let described = specify(&arguments.job, arguments.command, script, &SubmitContext::current()?)?;
    let depends_on = dependencies(client, &arguments.job.depends_on).await?;
    let submission = Submission::new(JobSpec { depends_on, ..described })?;
    Ok(match arguments.idempotency_key {
        Some(key) => submission.with_key(key),
        None => submission,
    })
}

/// A reference may mean several jobs: all of them have to end.
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

//! Turns the arguments of `submit` and `run` into a job that can be submitted.

use cohabit_client::types::{Dependency, JobSpec};
use cohabit_client::{Client, Submission};
use cohabit_console::{CommandError, output};

use crate::arguments::SubmissionArguments;
use crate::job_spec::{SubmitContext, specify};
use crate::script::Script;
use crate::values::DependencyArgument;

/// The job that the arguments describe. The head resolves its dependencies.
pub(super) async fn prepare(
    client: &Client,
    arguments: SubmissionArguments,
    script: Option<Script>,
) -> Result<Submission, CommandError> {
    if let Some(script) = &script {
        for line in script.late_directives() {
            output::print_message(&format!(
                "note: the directive in line {line} of the script is ignored, because it follows the first command"
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

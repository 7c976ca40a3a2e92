//! `last`: the job that this user has submitted last, in one line.

use std::process::ExitCode;

use cohabit_client::types::{JobRecord, JobRef, Time};
use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, output, with_schema};

use crate::arguments::LastArguments;
use crate::clock::now;
use crate::endpoint::connect;
use crate::render::job_cells::detail;
use cohabit_documents::jobs::JobDocument;

pub(super) async fn last(arguments: LastArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let jobs = client.resolve(&[JobRef::Last(0)]).await?;
    let gone = || CommandError::new(CommandErrorKind::NotFound, "the head no longer knows your last job");
    let job = client.show(&jobs).await?.pop().ok_or_else(gone)?;
    match arguments.display.output {
        OutputFormat::Json => output::print_document(&with_schema(JobDocument::from(&job)))?,
        OutputFormat::Quiet => output::print_text(&job.id.to_string())?,
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&line(&job, now()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Id, name, state, and what there is to say of it.
fn line(job: &JobRecord, now: Time) -> String {
    let (name, detail) = (cohabit_console::printable_line(&job.name), detail(job, now));
    let line = format!("{} {name} {} {}", job.id, job.state.word(), cohabit_console::printable_line(&detail));
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::{at, running};

    #[test]
    fn the_last_job_is_one_line() {
        let job = JobRecord { name: "a\nb".into(), ..running() };
        let line = line(&job, at(100));
        assert!(line.starts_with(&format!("{} a\\nb RUNNING ", job.id)) && !line.contains('\n'), "{line}");
    }
}

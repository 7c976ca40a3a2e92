//! `cancel`, `hold`, `release`, `requeue`: one change to some jobs.

use std::process::ExitCode;

use cohabit_client::proto::{JobChange, JobId, Verdict};

use crate::arguments::{ChangeArguments, Format};
use crate::connect::connect;
use crate::failure::Failure;
use crate::output;
use crate::render::changes;
use crate::render::documents::{Change, Changes, versioned};

pub(super) async fn change(change: JobChange, arguments: ChangeArguments) -> Result<ExitCode, Failure> {
    let client = connect(&arguments.connection).await?;
    let jobs = client.resolve(&arguments.jobs.references).await?;
    let verdicts = client.change(change, &jobs).await?;
    tell(change, &verdicts, arguments.display.output)?;
    Ok(verdicts.iter().find_map(refusal).map_or(ExitCode::SUCCESS, |failure| failure.exit_code()))
}

/// The refusals are told already, so all that is left of them is a code.
fn refusal((_, verdict): &(JobId, Verdict)) -> Option<Failure> {
    match verdict {
        Verdict::Done | Verdict::Already => None,
        Verdict::Refused(refusal) => Some(refusal.clone().into()),
    }
}

fn tell(change: JobChange, verdicts: &[(JobId, Verdict)], format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        let changes = verdicts.iter().map(|(job, verdict)| Change::new(change, *job, verdict)).collect();
        return output::document(&versioned(Changes { changes }));
    }
    for (job, verdict) in verdicts {
        let sentence = changes::verdict(change, *job, verdict);
        match (verdict, format) {
            (Verdict::Refused(_), _) => output::message(&format!("error: {sentence}")),
            (Verdict::Done, Format::Quiet) => output::data(&job.to_string())?,
            (Verdict::Already, Format::Quiet) => {}
            (Verdict::Done | Verdict::Already, _) => output::data(&sentence)?,
        }
    }
    Ok(())
}

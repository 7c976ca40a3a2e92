//! The jobs that arguments name to commands which only read: of several jobs with a name, the newest.
//!
//! Commands that change jobs, or act on their exit codes, leave such a name to the head, which refuses it.

use std::slice;

use cohabit_client::types::{Filter, JobId, JobRecord, JobRef, Refusal, RefusalCode};
use cohabit_client::{Client, Error};
use cohabit_console::{CommandError, CommandErrorKind, output};
use futures::TryStreamExt as _;

use crate::clock::now;

/// The job that a reference names.
pub(super) async fn resolve_one(client: &Client, reference: &JobRef) -> Result<JobId, CommandError> {
    match resolve(client, slice::from_ref(reference)).await?.as_slice() {
        [job] => Ok(*job),
        jobs => Err(CommandError::new(
            CommandErrorKind::Impossible("ambiguous"),
            format!("'{reference}' matches {} jobs: name one of them", jobs.len()),
        )),
    }
}

/// The jobs that these references name, in their order. Says so where a name has several.
pub(super) async fn resolve(client: &Client, references: &[JobRef]) -> Result<Vec<JobId>, CommandError> {
    match client.resolve(references).await {
        Err(Error::Refused(refusal)) if refusal.code == RefusalCode::Ambiguous => {}
        resolved => return Ok(resolved?),
    }
    let mut jobs = Vec::new();
    for reference in references {
        match (client.resolve(slice::from_ref(reference)).await, reference) {
            (Err(Error::Refused(refusal)), JobRef::Name(name)) if refusal.code == RefusalCode::Ambiguous => {
                jobs.push(newest(client, name, refusal).await?);
            }
            (resolved, _) => jobs.extend(resolved?),
        }
    }
    Ok(jobs)
}

/// The newest of the user's jobs with this name; as for the head, one that lives comes before all that ended.
async fn newest(client: &Client, name: &str, refusal: Refusal) -> Result<JobId, CommandError> {
    let user = Some(client.accepted().await?.by.user);
    let all = Filter { user, name: Some(name.to_owned()), ..Filter::default() };
    let live = Filter { ended_after: Some(now()), ..all.clone() };
    let is_live = |job: &JobRecord| std::future::ready(!job.state.is_terminal());
    // The newest comes last.
    let latest = |(count, _), job: JobRecord| std::future::ready(Ok((count + 1, Some(job.id))));
    let mut found = client.list(live).try_filter(is_live).try_fold((0, None), latest).await?;
    if found.1.is_none() {
        found = client.list(all).try_fold((0, None), latest).await?;
    }
    // All may have been forgotten meanwhile.
    let (count, Some(job)) = found else { return Err(Error::Refused(refusal).into()) };
    if count > 1 {
        output::print_message(&choice(count, name, job));
    }
    Ok(job)
}

fn choice(count: u64, name: &str, newest: JobId) -> String {
    format!("{count} jobs are named '{name}': showing the newest, {newest}; use the number for another")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_of_the_newest_job_is_said_in_one_line() {
        assert_eq!(
            choice(3, "train", JobId::new(12)),
            "3 jobs are named 'train': showing the newest, 12; use the number for another"
        );
    }
}

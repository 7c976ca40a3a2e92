//! `scancel`: cancels jobs that are named, or one's own in some states or with some names.

use std::collections::BTreeSet;
use std::process::ExitCode;

use cohabit_client::types::{ChangeResult, Filter, JobChange, JobId, JobRef, JobState};
use cohabit_client::{Client, Error};
use cohabit_console::{CommandError, output};

use super::super::selection::owner;
use super::squeue::states;
use super::words::{connection, has, job_ids, list_of, options, slurm_id, usage};
use crate::clock::now;
use crate::endpoint::connect;
use crate::slurm::{OptionName, ValueUse};

const OPTIONS: [OptionName; 8] = [
    OptionName { short: Some('u'), long: "user", value: ValueUse::Always },
    OptionName { short: None, long: "me", value: ValueUse::Never },
    OptionName { short: Some('n'), long: "name", value: ValueUse::Always },
    OptionName { short: Some('t'), long: "state", value: ValueUse::Always },
    OptionName { short: Some('p'), long: "partition", value: ValueUse::Always },
    OptionName { short: Some('Q'), long: "quiet", value: ValueUse::Never },
    OptionName { short: Some('v'), long: "verbose", value: ValueUse::Never },
    OptionName { short: Some('f'), long: "full", value: ValueUse::Never },
];

/// The options that select jobs.
const SELECTING: [&str; 5] = ["user", "me", "name", "state", "partition"];

pub(super) async fn scancel(words: &[String]) -> Result<ExitCode, CommandError> {
    let (given, named) = options(words, &OPTIONS, "`cohabit cancel`, or `kill` in the script for a signal")?;
    let selects = SELECTING.iter().any(|name| has(&given, name));
    if !selects && named.is_empty() {
        return Err(usage("No job identification provided"));
    }
    let named = named.iter().map(|word| job_ids(word)).collect::<Result<Vec<_>, _>>()?.concat();
    let client = connect(&connection()).await?;
    let jobs = match selects {
        false => named,
        true => {
            let selected = selected(&client, &given).await?;
            // As in Slurm, both have to hold.
            let is_named = |job: &JobId| named.is_empty() || named.iter().any(|it| it.number == job.number);
            selected.into_iter().filter(is_named).collect()
        }
    };
    cancel(&client, &jobs, has(&given, "quiet")).await
}

/// Live jobs of a user that pass all filters.
async fn selected(client: &Client, given: &[(&'static str, String)]) -> Result<Vec<JobId>, CommandError> {
    let user = given.iter().rev().find(|(name, _)| *name == "user").map(|(_, user)| user.as_str());
    let user = owner(&client.accepted().await?.by, user)?;
    let wanted = list_of(given, "state").iter().map(|word| states(word)).collect::<Result<Vec<_>, _>>()?;
    let wanted: Vec<JobState> = wanted.concat();
    let names: BTreeSet<String> = list_of(given, "name").into_iter().collect();
    let partitions: BTreeSet<String> = list_of(given, "partition").into_iter().collect();
    let filter = Filter { user: Some(user), states: wanted, ended_after: Some(now()), ..Filter::default() };
    let mut found = client.list_all(filter).await?;
    found.retain(|job| {
        let partition = job.labels.partition.as_deref().unwrap_or_default();
        job.application.is_none()
            && !job.state.is_terminal()
            && (names.is_empty() || names.contains(&job.name))
            && (partitions.is_empty() || partitions.contains(partition))
    });
    Ok(found.into_iter().map(|job| job.id).collect())
}

/// Cancels each job; one that cannot be cancelled does not keep the others.
async fn cancel(client: &Client, jobs: &[JobId], is_quiet: bool) -> Result<ExitCode, CommandError> {
    let (mut known, mut code) = (Vec::new(), ExitCode::SUCCESS);
    let mut fail = |job: JobId, why: &str| {
        if !is_quiet {
            output::print_message(&format!("error: Kill job error on job id {}: {why}", slurm_id(job)));
        }
        code = ExitCode::FAILURE;
    };
    for job in jobs {
        match client.resolve(&[JobRef::Id(*job)]).await {
            Ok(found) => known.extend(found),
            Err(Error::Refused(_)) => fail(*job, "Invalid job id specified"),
            Err(error) => return Err(error.into()),
        }
    }
    for (job, result) in client.change(JobChange::Cancel, &known).await? {
        match result {
            // As scancel does, it says nothing of those that have ended.
            ChangeResult::Done | ChangeResult::Already => {}
            ChangeResult::Refused(refusal) => fail(job, &refusal.message),
        }
    }
    Ok(code)
}

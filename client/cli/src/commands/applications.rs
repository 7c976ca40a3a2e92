//! `applications`: lists live applications. And finds the one that an argument of other commands names.

use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_client::types::{ApplicationOwner, ApplicationRecord, JobId, JobRef, RankId};
use cohabit_console::{CommandError, CommandErrorKind, Screen, output, with_schema};
use jiff::tz::TimeZone;

use super::job_reference::resolve_one;
use crate::arguments::{ApplicationsArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::application_documents::{ApplicationDocument, ApplicationListDocument};
use crate::render::applications_table::applications_table;

/// Most names in the error for an unknown application.
const MOST_NAMES: usize = 20;

pub(super) async fn applications(arguments: ApplicationsArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let owner = match (arguments.all, &arguments.user) {
        (false, None) => ApplicationOwner::Caller,
        (true, _) | (false, Some(_)) => ApplicationOwner::Anyone,
    };
    let mut found = client.applications_of(owner).await?;
    if let Some(user) = &arguments.user {
        found.retain(|it| it.user == *user);
    }
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&applications_table(&found, &TimeZone::system(), Screen::of_stdout()))?
        }
        OutputFormat::Json => output::print_document(&with_schema(ApplicationListDocument {
            applications: found.iter().map(ApplicationDocument::from).collect(),
        }))?,
        OutputFormat::Quiet => found.iter().try_for_each(|it| output::print_text(&it.job.to_string()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The live application that a reference names.
pub(super) async fn find_application(
    client: &Client,
    reference: &JobRef,
) -> Result<ApplicationRecord, CommandError> {
    look_for_application(client, reference).await?
}

/// The live application that a reference names, or the error that says that there is none.
pub(super) async fn look_for_application(
    client: &Client,
    reference: &JobRef,
) -> Result<Result<ApplicationRecord, CommandError>, CommandError> {
    let live = client.applications_of(ApplicationOwner::Anyone).await?;
    let user = client.accepted().await?.by.user;
    let job = match reference {
        JobRef::Name(name) => return Ok(named(live, name, &user)),
        JobRef::Id(job) => *job,
        // A range is no application, and whether there is a last job shows when it is asked for.
        JobRef::Range(..) => return Ok(Err(unknown(&live, &reference.to_string(), &user))),
        JobRef::Last(_) => resolve_one(client, reference).await?,
    };
    Ok(with_root(live, job, &user))
}

/// The jobs of processes that did not answer.
pub(super) fn silent_jobs(silent: &[RankId]) -> Vec<JobId> {
    silent.iter().map(|process| process.job()).collect()
}

fn named(live: Vec<ApplicationRecord>, name: &str, user: &str) -> Result<ApplicationRecord, CommandError> {
    if let Some(own) = live.iter().find(|it| it.user == user && it.name == name) {
        return Ok(own.clone());
    }
    let others: Vec<&ApplicationRecord> = live.iter().filter(|it| it.name == name).collect();
    match others.as_slice() {
        [] => Err(unknown(&live, &format!("'{name}'"), user)),
        [other] => Ok((*other).clone()),
        several => {
            let roots = several.iter().map(|it| format!("job {} of {}", it.job, it.user));
            let message = format!(
                "several live applications are named '{name}': give the number of one, {}",
                roots.collect::<Vec<_>>().join(" or ")
            );
            Err(CommandError::new(CommandErrorKind::Impossible("ambiguous"), message))
        }
    }
}

fn with_root(
    live: Vec<ApplicationRecord>,
    job: JobId,
    user: &str,
) -> Result<ApplicationRecord, CommandError> {
    if let Some(found) = live.iter().find(|it| it.job == job) {
        return Ok(found.clone());
    }
    match live.iter().find(|it| it.runners.contains(&job)) {
        Some(parent) => Err(CommandError::new(
            CommandErrorKind::NotFound,
            format!(
                "job {job} is a part of application '{}': give its name, or its root job {}",
                parent.name, parent.job
            ),
        )),
        None => Err(unknown(&live, &format!("with root job {job}"), user)),
    }
}

/// The error for an application that does not live, with those that do.
fn unknown(live: &[ApplicationRecord], which: &str, user: &str) -> CommandError {
    let own: Vec<&ApplicationRecord> = live.iter().filter(|it| it.user == user).collect();
    let named = own.iter().take(MOST_NAMES).map(|it| format!("'{}' (job {})", it.name, it.job));
    let mut names = named.collect::<Vec<_>>().join(", ");
    if own.len() > MOST_NAMES {
        names.push_str(&format!(" and {} more", own.len() - MOST_NAMES));
    }
    let advice = match names.as_str() {
        "" => {
            format!("no application of {user} lives; `cohabit applications --all` lists those of all users")
        }
        names => format!("those of {user} are {names}"),
    };
    let message = format!("there is no live application {which}: {advice}");
    CommandError::new(CommandErrorKind::NotFound, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::application_samples::applications;

    fn error(found: Result<ApplicationRecord, CommandError>) -> String {
        found.unwrap_err().message
    }

    #[test]
    fn an_application_is_found_by_its_name_or_its_root_job() {
        let found = |reference: &str, user: &str| named(applications(), reference, user).map(|it| it.job);
        assert_eq!(found("search", "ada"), Ok(JobId::new(3)));
        assert_eq!(found("search", "eve"), Ok(JobId::new(9)), "one's own comes first");
        assert_eq!(found("count", "ada"), Ok(JobId::new(12)), "that of another user is the only one");
        assert_eq!(with_root(applications(), JobId::new(9), "ada").map(|it| it.job), Ok(JobId::new(9)));
        let both = error(named(applications(), "search", "bob"));
        assert!(both.ends_with("give the number of one, job 3 of ada or job 9 of eve"), "{both}");
    }

    #[test]
    fn an_unknown_application_is_answered_with_those_that_live() {
        let expected = "there is no live application 'serach': those of ada are 'search' (job 3)";
        assert_eq!(error(named(applications(), "serach", "ada")), expected);
        let part = error(with_root(applications(), JobId::new(5), "ada"));
        assert_eq!(part, "job 5 is a part of application 'search': give its name, or its root job 3");
        let none = error(with_root(applications(), JobId::new(99), "bob"));
        assert!(
            none.starts_with("there is no live application with root job 99: no application of bob lives")
        );
        let many = (1..=23).map(|job| ApplicationRecord {
            job: JobId::new(job),
            name: format!("a{job}"),
            ..applications().remove(0)
        });
        let many = error(named(many.collect(), "none", "ada"));
        assert!(many.ends_with("'a20' (job 20) and 3 more"), "{many}");
    }
}

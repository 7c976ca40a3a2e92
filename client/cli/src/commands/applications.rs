//! `applications`: lists live applications. And finds the one that an argument of other commands names.

use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_client::types::{
    ApplicationOwner, ApplicationRecord, Entrypoint, Filter, JobId, JobRecord, JobRef, RankId,
};
use cohabit_console::{CommandError, CommandErrorKind, Screen, output, with_schema};
use futures::TryStreamExt as _;
use jiff::tz::TimeZone;

use super::job_reference::resolve_one;
use crate::arguments::{ApplicationsArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::application_documents::{ApplicationDocument, ApplicationListDocument};
use crate::render::applications_table::applications_table;
use crate::render::local_time;

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

/// The error for a name that means nothing that lives, but applications that have ended; none for another
/// one.
pub(super) async fn ended_application(
    client: &Client,
    reference: &JobRef,
    command: &str,
) -> Result<Option<CommandError>, CommandError> {
    let JobRef::Name(name) = reference else { return Ok(None) };
    let user = client.accepted().await?.by.user;
    let filter = Filter { user: Some(user), name: Some(name.clone()), ..Filter::default() };
    let jobs = client.list_all(filter).await?;
    let Some(roots) = ended_roots(&jobs) else { return Ok(None) };
    let Some(error) = ended(&roots, command, &TimeZone::system()) else { return Ok(None) };
    // A command may begin with the same word: whether the job is a root shows in its children.
    let Some(root) = roots.last() else { return Ok(None) };
    Ok((!children(client, root.id, &root.user).await?.is_empty()).then_some(error))
}

/// All children of a root job.
pub(super) async fn children(
    client: &Client,
    root: JobId,
    user: &str,
) -> Result<Vec<JobRecord>, CommandError> {
    let filter = Filter { after: Some(root), user: Some(user.to_owned()), ..Filter::default() };
    let is_child = |record: &JobRecord| std::future::ready(record.application == Some(root));
    Ok(client.list(filter).try_filter(is_child).try_collect().await?)
}

/// The root jobs among those of a name, if all have ended, and no other job has the name. Children may: they
/// have the names of actors, or of what they are.
fn ended_roots(jobs: &[JobRecord]) -> Option<Vec<&JobRecord>> {
    let roots: Vec<&JobRecord> = jobs.iter().filter(|job| job.application.is_none()).collect();
    let are_roots = roots.iter().all(|root| Entrypoint::is_application_title(&root.work));
    (are_roots && jobs.iter().all(|job| job.state.is_terminal())).then_some(roots)
}

fn ended(roots: &[&JobRecord], command: &str, zone: &TimeZone) -> Option<CommandError> {
    let (last, earlier) = roots.split_last()?;
    let at = last.ended_at.map_or(String::new(), |at| format!(" at {}", local_time(at, zone)));
    let earlier = match earlier.last() {
        Some(before) => format!("; the one before is job {}", before.id),
        None => String::new(),
    };
    let message = format!(
        "application '{}' has ended: its last run, job {}, ended as {}{at}. Give its number: \
         `cohabit {command} {}`{earlier}",
        last.name, last.id, last.state, last.id
    );
    Some(CommandError::new(CommandErrorKind::NotFound, message))
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
    use cohabit_client::types::JobState;

    use crate::render::application_samples::applications;
    use crate::render::samples::{at, running};

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
    fn the_name_of_an_ended_application_is_answered_with_its_last_job() {
        let run = |job, state| JobRecord {
            id: JobId::new(job),
            name: "count".into(),
            state,
            work: "application count 5".into(),
            ended_at: Some(at(60)),
            ..running()
        };
        let error = |jobs: &[JobRecord]| Some(ended(&ended_roots(jobs)?, "logs", &TimeZone::UTC)?.message);
        let once = error(&[run(12, JobState::Completed)]).unwrap();
        let expected = "application 'count' has ended: its last run, job 12, ended as COMPLETED at \
                        2026-11-21 08:34:20. Give its number: `cohabit logs 12`";
        assert_eq!(once, expected);
        let runs = [run(4, JobState::Failed), run(12, JobState::Completed)];
        assert_eq!(error(&runs), Some(format!("{expected}; the one before is job 4")));
        let child = JobRecord { application: Some(JobId::new(12)), ..run(14, JobState::Cancelled) };
        assert_eq!(error(&[run(12, JobState::Completed), child.clone()]), Some(expected.to_owned()));
        assert_eq!(error(&[child]), None);
        assert_eq!(error(&[]), None);
        assert_eq!(error(&[run(12, JobState::Completed), running()]), None, "a job lives");
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

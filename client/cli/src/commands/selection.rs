//! Selects jobs by state, user and name, for commands that change them.
//!
//! An array counts as a whole, by its state, and a part of an application with its root job.

use cohabit_client::Client;
use cohabit_client::types::{Filter, JobChange, JobId, JobRecord, JobState, Principal, Role, Time};
use cohabit_console::{CommandError, CommandErrorKind};
use futures::TryStreamExt as _;

use super::list::LISTED_FOR;
use crate::arguments::{ChangeArguments, JobSelection};
use crate::clock::now;

/// Refuses a command that names no jobs, or names some and selects others.
pub(super) fn check(change: JobChange, arguments: &ChangeArguments) -> Result<(), CommandError> {
    let verb = command(change);
    let message = match (arguments.references.is_empty(), arguments.selection.is_empty()) {
        (true, false) | (false, true) => return Ok(()),
        (true, true) => format!(
            "there are no jobs to {verb}: name them (`cohabit {verb} 12`), or select them with --state, --user, \
             --name or --all"
        ),
        (false, false) => format!(
            "jobs are either named or selected: leave out '{}', or --state, --user, --name and --all",
            arguments.references.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        ),
    };
    Err(CommandError::new(CommandErrorKind::Usage, message))
}

/// The jobs of the caller, or of the user that an admin names, that pass the filters.
pub(super) async fn select(
    client: &Client,
    change: JobChange,
    selection: &JobSelection,
) -> Result<Vec<JobId>, CommandError> {
    let user = owner(&client.accepted().await?.by, selection.user.as_deref())?;
    let filter = filter(change, selection, user, now());
    let may_have_ended = reaches_ended(change, &filter.states);
    let is_meant = |job: &JobRecord| {
        std::future::ready(job.application.is_none() && (may_have_ended || !job.state.is_terminal()))
    };
    let jobs = client.list(filter).try_filter(is_meant).map_ok(|job| job.id);
    Ok(jobs.try_collect().await?)
}

/// Says that the filters selected nothing.
pub(super) fn nothing_selected(change: JobChange) -> String {
    format!("no job matches: there is nothing to {}", command(change))
}

/// The user whose jobs are meant.
pub(super) fn owner(by: &Principal, user: Option<&str>) -> Result<String, CommandError> {
    match (user, by.role) {
        (None, _) => Ok(by.user.clone()),
        (Some(user), Role::Admin) => Ok(user.to_owned()),
        (Some(user), _) if user == by.user => Ok(user.to_owned()),
        (Some(user), Role::User | Role::Worker | Role::Viewer) => Err(CommandError::new(
            CommandErrorKind::NotAllowed,
            format!("--user {user}: only an admin can change jobs of others; leave --user out for your own"),
        )),
    }
}

fn filter(change: JobChange, selection: &JobSelection, user: String, now: Time) -> Filter {
    let states = match selection.states() {
        states if states.is_empty() => changeable(change),
        states => states,
    };
    let ended_after = if reaches_ended(change, &states) { now - LISTED_FOR } else { now };
    Filter {
        states,
        ended_after: Some(ended_after),
        user: Some(user),
        name: selection.name.clone(),
        ..Filter::default()
    }
}

/// The states in which a change has an effect; empty for all that are live.
fn changeable(change: JobChange) -> Vec<JobState> {
    match change {
        JobChange::Hold => vec![JobState::Pending, JobState::Preempted],
        JobChange::Release => vec![JobState::Held],
        JobChange::Requeue => vec![JobState::Running],
        JobChange::Cancel | JobChange::Kill | JobChange::Withdraw => Vec::new(),
    }
}

/// Only a requeue acts on jobs that have ended, if such states are given.
fn reaches_ended(change: JobChange, states: &[JobState]) -> bool {
    change == JobChange::Requeue && states.iter().any(|state| state.is_terminal())
}

/// The command for a change.
fn command(change: JobChange) -> &'static str {
    if change == JobChange::Kill { JobChange::Cancel.verb() } else { change.verb() }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::{CommandLine, Verb};
    use crate::render::samples::at;

    fn arguments(words: &str) -> ChangeArguments {
        let words = ["cohabit", "hold"].into_iter().chain(words.split_whitespace());
        let Verb::Hold(arguments) = CommandLine::try_parse_from(words).unwrap().verb else { panic!() };
        arguments
    }

    fn filter_of(change: JobChange, words: &str) -> Filter {
        filter(change, &arguments(words).selection, "ada".into(), at(0))
    }

    #[test]
    fn jobs_are_either_named_or_selected() {
        let refusal = |words: &str| check(JobChange::Kill, &arguments(words)).unwrap_err().message;
        for words in ["12 train", "--all", "--state PENDING", "--user ada", "--name n", "--state ./s 12"] {
            assert_eq!(check(JobChange::Hold, &arguments(words)), Ok(()), "{words}");
        }
        for words in ["", "--state ./here"] {
            assert_eq!(
                refusal(words),
                "there are no jobs to cancel: name them (`cohabit cancel 12`), or select them with --state, \
                 --user, --name or --all"
            );
        }
        assert!(refusal("12 train --all").contains("leave out '12 train', or --state"));
    }

    #[test]
    fn jobs_of_others_are_selected_by_admins_only() {
        let owner = |role, user| owner(&Principal::new("ada", role), user);
        assert_eq!(owner(Role::Admin, None).unwrap(), "ada");
        assert_eq!(owner(Role::Admin, Some("eve")).unwrap(), "eve");
        assert_eq!(owner(Role::User, Some("ada")).unwrap(), "ada");
        assert_eq!(owner(Role::User, Some("eve")).unwrap_err().kind, CommandErrorKind::NotAllowed);
    }

    #[test]
    fn a_change_selects_the_states_that_it_acts_on() {
        let cancel = filter_of(JobChange::Cancel, "--all");
        assert_eq!((cancel.states, cancel.ended_after), (vec![], Some(at(0))));
        assert_eq!(filter_of(JobChange::Release, "--name n").states, [JobState::Held]);
        let given = filter_of(JobChange::Hold, "--state pending,running --name n");
        assert_eq!((given.states.len(), given.name.as_deref()), (2, Some("n")));
        let requeue = filter_of(JobChange::Requeue, "--state failed");
        assert_eq!(requeue.ended_after, Some(at(0) - LISTED_FOR));
        let cancel = filter_of(JobChange::Cancel, "--state failed");
        assert_eq!(cancel.ended_after, Some(at(0)));
    }
}

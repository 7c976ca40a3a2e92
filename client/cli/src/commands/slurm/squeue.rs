//! `squeue`: lists jobs with Slurm's default columns.

use std::collections::BTreeSet;
use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_client::types::{Filter, JobId, JobRecord, JobState};
use cohabit_console::{CommandError, output};

use super::super::list::LISTED_FOR;
use super::queue_rows::{QueueRow, queue_text, state_code};
use super::words::{connection, has, job_ids, list_of, options, usage};
use crate::clock::now;
use crate::endpoint::connect;
use crate::slurm::{OptionName, ValueUse};

const OPTIONS: [OptionName; 9] = [
    OptionName { short: Some('u'), long: "user", value: ValueUse::Always },
    OptionName { short: None, long: "me", value: ValueUse::Never },
    OptionName { short: Some('j'), long: "jobs", value: ValueUse::Always },
    OptionName { short: Some('n'), long: "name", value: ValueUse::Always },
    OptionName { short: Some('p'), long: "partition", value: ValueUse::Always },
    OptionName { short: Some('t'), long: "states", value: ValueUse::Always },
    OptionName { short: Some('h'), long: "noheader", value: ValueUse::Never },
    OptionName { short: Some('r'), long: "array", value: ValueUse::Never },
    OptionName { short: Some('a'), long: "all", value: ValueUse::Never },
];

/// The most pending members of an array whose indices are listed in its row.
const LISTED_MEMBERS: u64 = 1_000;

/// What is listed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selection {
    users: BTreeSet<String>,
    names: BTreeSet<String>,
    partitions: BTreeSet<String>,
    jobs: BTreeSet<JobId>,
    /// Empty for all that live.
    states: Vec<JobState>,
}

pub(super) async fn squeue(words: &[String]) -> Result<ExitCode, CommandError> {
    let instead = "`cohabit list`, with --output json for other columns";
    let (given, rest) = options(words, &OPTIONS, instead)?;
    if let Some(word) = rest.first() {
        return Err(usage(format!("Unrecognized argument: {word}")));
    }
    let client = connect(&connection()).await?;
    let mut selection = selection(&given)?;
    if has(&given, "me") {
        selection.users.insert(client.accepted().await?.by.user);
    }
    let rows = rows(&client, &selection, has(&given, "array")).await?;
    output::print_text(&queue_text(&rows, !has(&given, "noheader")))?;
    Ok(ExitCode::SUCCESS)
}

fn selection(given: &[(&'static str, String)]) -> Result<Selection, CommandError> {
    let set = |name| list_of(given, name).into_iter().collect();
    let mut selection = Selection {
        users: set("user"),
        names: set("name"),
        partitions: set("partition"),
        ..Selection::default()
    };
    for word in list_of_jobs(given) {
        selection.jobs.extend(job_ids(&word)?);
    }
    for word in list_of(given, "states") {
        selection.states.extend(states(&word)?);
    }
    Ok(selection)
}

/// The jobs of `--jobs`; commas in brackets divide nothing.
fn list_of_jobs(given: &[(&'static str, String)]) -> Vec<String> {
    let mut jobs = Vec::new();
    for (_, value) in given.iter().filter(|(name, _)| *name == "jobs") {
        let mut is_bracket = false;
        let parts = value.split(|letter| {
            is_bracket = (is_bracket || letter == '[') && letter != ']';
            letter == ',' && !is_bracket
        });
        jobs.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
    }
    jobs
}

/// The states of a word such as `PD`, `PENDING` or `all`.
pub(super) fn states(word: &str) -> Result<Vec<JobState>, CommandError> {
    let is_meant = |state: &JobState| {
        word.eq_ignore_ascii_case("all")
            || state.word().eq_ignore_ascii_case(word)
            || state_code(*state).eq_ignore_ascii_case(word)
    };
    match JobState::ALL.into_iter().filter(is_meant).collect::<Vec<_>>() {
        states if states.is_empty() => {
            Err(usage(format!("Invalid job state specified: {word}: write PD, R, CD, F, CA, TO, … or all")))
        }
        states => Ok(states),
    }
}

async fn rows(
    client: &Client,
    selection: &Selection,
    by_member: bool,
) -> Result<Vec<QueueRow>, CommandError> {
    let reaches_ended = selection.states.iter().any(|state| state.is_terminal());
    let one = |set: &BTreeSet<String>| if set.len() == 1 { set.first().cloned() } else { None };
    let filter = Filter {
        user: one(&selection.users),
        name: one(&selection.names),
        ended_after: Some(if reaches_ended { now() - LISTED_FOR } else { now() }),
        ..Filter::default()
    };
    let mut rows = Vec::new();
    for job in client.list_all(filter).await? {
        if !selection.has_job(&job) {
            continue;
        }
        match &job.array {
            None => rows.extend(
                Some(&job).filter(|job| selection.has_state(job)).map(|job| QueueRow::of(job, now())),
            ),
            Some(_) => rows.extend(array_rows(client, &job, selection, by_member).await?),
        }
    }
    Ok(rows)
}

/// A row for each member that is not pending, and one for all that are.
async fn array_rows(
    client: &Client,
    array: &JobRecord,
    selection: &Selection,
    by_member: bool,
) -> Result<Vec<QueueRow>, CommandError> {
    let waiting = [JobState::Pending, JobState::Held];
    let count =
        waiting.iter().map(|state| array.array.as_ref().map_or(0, |it| it.count(*state))).sum::<u64>();
    let lists_waiting = by_member || count <= LISTED_MEMBERS;
    let states = JobState::ALL.into_iter().filter(|state| lists_waiting || !waiting.contains(state));
    let filter = Filter { members_of: Some(array.id.number), states: states.collect(), ..Filter::default() };
    let members = client.list_all(filter).await?;
    let members: Vec<JobRecord> = members.into_iter().filter(|it| selection.has_member(it)).collect();
    let (pending, others): (Vec<&JobRecord>, Vec<&JobRecord>) =
        members.iter().partition(|member| waiting.contains(&member.state) && !by_member);
    let mut rows = Vec::new();
    if !lists_waiting && selection.has_state_of(JobState::Pending) {
        rows.push(QueueRow::of_many(array, now()));
    }
    rows.extend(pending.first().map(|first| QueueRow::of_members(first, &pending, now())));
    rows.extend(others.into_iter().map(|member| QueueRow::of(member, now())));
    Ok(rows)
}

impl Selection {
    fn has_job(&self, job: &JobRecord) -> bool {
        let is_in = |set: &BTreeSet<String>, text: &str| set.is_empty() || set.contains(text);
        let partition = job.labels.partition.as_deref().unwrap_or_default();
        is_in(&self.users, &job.user)
            && is_in(&self.names, &job.name)
            && is_in(&self.partitions, partition)
            && (self.jobs.is_empty() || self.jobs.iter().any(|it| it.number == job.id.number))
    }

    fn has_member(&self, member: &JobRecord) -> bool {
        let is_named = self.jobs.is_empty()
            || self.jobs.contains(&member.id)
            || self.jobs.contains(&JobId::new(member.id.number));
        is_named && self.has_state(member)
    }

    fn has_state(&self, job: &JobRecord) -> bool {
        self.has_state_of(job.state)
    }

    fn has_state_of(&self, state: JobState) -> bool {
        match self.states.as_slice() {
            [] => !state.is_terminal(),
            states => states.contains(&state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::pending;

    fn of(words: &str) -> Selection {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let (given, _) = options(&words, &OPTIONS, "x").unwrap();
        selection(&given).unwrap()
    }

    #[test]
    fn options_select_jobs_as_in_slurm() {
        let selection = of("-u ada,bob -j 3,12_[1-2,5],9 -t PD,running --name=x -h");
        let jobs: Vec<String> = selection.jobs.iter().map(ToString::to_string).collect();
        assert_eq!(jobs, ["3", "9", "12.1", "12.2", "12.5"]);
        assert_eq!(selection.states, [JobState::Pending, JobState::Held, JobState::Running]);
        assert_eq!((selection.users.len(), selection.names.len()), (2, 1));
        let member = JobRecord { id: JobId::member(12, 2), state: JobState::Running, ..pending() };
        assert!(selection.has_member(&member));
        assert!(!selection.has_member(&JobRecord { id: JobId::member(12, 3), ..member.clone() }));
        assert!(of("").has_state(&member) && !of("-t PD").has_state(&member));
        assert!(states("nonsense").unwrap_err().message.contains("nonsense"));
    }

    #[test]
    fn an_option_that_is_not_known_is_an_error_that_says_what_to_use() {
        let words = ["-o".to_owned(), "%i".to_owned()];
        let refusal = options(&words, &OPTIONS, "`cohabit list`").unwrap_err();
        assert_eq!(refusal.message, "-o is not supported here: use `cohabit list`");
    }
}

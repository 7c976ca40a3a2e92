//! Follows a sweep and cancels the members that its rule stops.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use cohabit_client::Client;
use cohabit_client::types::{JobChange, JobId, JobState, Sweep, counted};
use cohabit_console::{CommandError, CommandErrorKind, output};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::members::MembersReader;
use super::reference;
use super::show::row_of;
use crate::arguments::SweepResumeArguments;
use crate::endpoint::connect_to_wait;
use crate::process::exit_code;

/// How often members are looked at, and how much longer it takes for each of them.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_FOR_EACH: Duration = Duration::from_millis(1);

pub(super) async fn resume(arguments: SweepResumeArguments) -> Result<ExitCode, CommandError> {
    let client = connect_to_wait(&arguments.connection).await?;
    let (record, sweep) = reference::find(&client, &arguments.sweep).await?;
    match sweep.early_stopping {
        Some(_) => follow(&client, record.id, &sweep).await,
        None => Err(CommandError::invalid(format!(
            "sweep {} has no rule for early stopping, so its members run to their end: `cohabit wait {}` waits \
             for them",
            record.id, record.id
        ))),
    }
}

/// Applies the rule until all members have ended; 0 if each of them has completed or was stopped by the rule.
pub(super) async fn follow(client: &Client, array: JobId, sweep: &Sweep) -> Result<ExitCode, CommandError> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot handle Ctrl-C: {error}"))
    })?;
    tokio::select! {
        ended = apply(client, array, sweep) => ended,
        _ = interrupts.recv() => Err(CommandError::new(
            CommandErrorKind::Interrupted,
            format!(
                "interrupted: sweep {array} goes on, and no member is stopped early before: cohabit sweep resume \
                 {array}; cohabit cancel {array} ends it"
            ),
        )),
    }
}

async fn apply(client: &Client, array: JobId, sweep: &Sweep) -> Result<ExitCode, CommandError> {
    let mut reader = MembersReader::new(client, array);
    let (mut told, mut stopped) = (BTreeSet::new(), BTreeSet::new());
    loop {
        reader.refresh().await?;
        let decisions = reader.decisions(sweep);
        stop(client, &reader, &decisions, &mut stopped).await?;
        for (id, member) in &reader.members {
            if member.record.state.is_terminal() && told.insert(*id) {
                output::print_message(&ended(&reader, sweep, *id));
            }
        }
        if told.len() == reader.members.len() {
            break;
        }
        sleep(LOOK + LOOK_FOR_EACH * reader.members.len() as u32).await;
    }
    summarize(&reader, sweep, array);
    let is_good = |id: &JobId, state| state == JobState::Completed || stopped.contains(id);
    let all_good = reader.members.iter().all(|(id, member)| is_good(id, member.record.state));
    Ok(exit_code(i32::from(!all_good)))
}

/// Cancels the members that the rule stops and that still live.
async fn stop(
    client: &Client,
    reader: &MembersReader,
    decisions: &[(JobId, crate::sweep::early_stopping::StopDecision)],
    stopped: &mut BTreeSet<JobId>,
) -> Result<(), CommandError> {
    let mut cancelled = Vec::new();
    for (id, decision) in decisions {
        let Some(state) = reader.members.get(id).map(|member| member.record.state) else { continue };
        if state == JobState::Cancelled {
            // An earlier run of this command has stopped it.
            stopped.insert(*id);
        } else if !state.is_terminal() && stopped.insert(*id) {
            output::print_message(&format!("stopping member {id}: {}", decision.reason));
            cancelled.push(*id);
        }
    }
    if !cancelled.is_empty() {
        client.change(JobChange::Cancel, &cancelled).await?;
    }
    Ok(())
}

fn ended(reader: &MembersReader, sweep: &Sweep, id: JobId) -> String {
    let row = row_of(reader, sweep, id, &[]);
    let best = row.best_text().map_or(String::new(), |best| format!(", best {best}"));
    format!("member {id} {}{best}", row.state.word())
}

fn summarize(reader: &MembersReader, sweep: &Sweep, array: JobId) {
    let count = reader.members.len() as u64;
    let metric = sweep.metric.as_deref().unwrap_or_default();
    let reported = reader.members.values().any(|member| member.metrics().any(|name| name == metric));
    let members = counted(count, "member", "members");
    output::print_message(&match reported {
        true => {
            format!("all {members} of sweep {array} have ended: cohabit sweep show {array} compares them")
        }
        false => format!(
            "all {members} of sweep {array} have ended, and none has reported '{metric}', so the rule stopped none"
        ),
    });
}

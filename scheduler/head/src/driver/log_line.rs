//! One log line for each event and effect: who and what, but never a job's environment or arguments.

use std::fmt;

use cohabit_policy::Plan;
use cohabit_scheduler_core::{Effect, Event};
use cohabit_types::{ChangeResult, CheckpointResult, Notice, Order, Reply, Report, Request, counted};

/// Displays its content in one line.
pub(super) struct LogLine<'a, T>(pub(super) &'a T);

fn jobs(count: usize) -> String {
    counted(count, "job", "jobs")
}

impl fmt::Display for LogLine<'_, Event> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Event::HeadStarted(config) => write!(f, "head started, lost after {}", config.lost_after),
            Event::Client(client, by, request) => {
                write!(f, "client {}: {} wants {}", client.0, by.user, LogLine(request))
            }
            Event::Joined(key, inventory) => write!(
                f,
                "worker {key} joined as {} with {} and {}",
                inventory.name,
                counted(inventory.devices.len(), "device", "devices"),
                counted(inventory.held_ranks.len(), "rank", "ranks")
            ),
            Event::Lost(key, why) => write!(f, "worker {key} lost: {why}"),
            Event::Report(key, report) => write!(f, "worker {key}: {}", LogLine(report)),
            Event::Planned(request, plan) => write!(f, "plan {}: {}", request.0, LogLine(plan)),
            Event::Alarm => f.write_str("alarm"),
            Event::InterferenceUpdated => f.write_str("the interference model changed"),
            Event::ClockSet(forward) => write!(f, "the clock was set forward by {forward}"),
            Event::Restored(part) => write!(f, "{} restored from the archive", jobs(part.jobs.len())),
            Event::BackupRestored { last_number, .. } => {
                write!(f, "a backup was restored, numbers go on after {last_number}")
            }
        }
    }
}

impl fmt::Display for LogLine<'_, Request> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Request::Submit(submit) => write!(f, "job '{}' submitted", submit.spec.name),
            Request::Change(change, ids) => write!(f, "{} changed: {}", jobs(ids.len()), change.verb()),
            Request::Update(update, ids) => write!(f, "{} updated: {update}", jobs(ids.len())),
            Request::Drain(drain) => write!(f, "node {} drained", drain.node),
            Request::Resume(node) => write!(f, "node {node} resumed"),
            Request::ApplyShares(_) => f.write_str("a table of shares applied"),
            Request::Reserve(asked) => {
                write!(f, "{} reserved", counted(asked.nodes.len(), "node", "nodes"))
            }
            Request::CancelReservation(number) => write!(f, "reservation {number} cancelled"),
        }
    }
}

impl fmt::Display for LogLine<'_, Report> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Report::Started { rank, .. } => write!(f, "{rank} started"),
            Report::Ended { rank, outcome, .. } => write!(f, "{rank} {outcome}"),
            Report::Progress(progress) => {
                write!(f, "progress of {}", counted(progress.len(), "attempt", "attempts"))
            }
            Report::Sharing { rank, enforcement } => write!(f, "{rank} shares its device, {enforcement}"),
            Report::PrivateUser { rank, uid } => write!(f, "{rank} runs as user {uid}"),
            Report::Stalled { attempt, quiet_for, .. } => {
                write!(f, "{attempt} reported no step for {quiet_for}")
            }
            Report::Usage(usage) => write!(f, "usage of {}", counted(usage.len(), "rank", "ranks")),
            Report::Idle { attempt, quiet_for, .. } => {
                write!(f, "{attempt} has done nothing for {quiet_for}")
            }
            Report::Active(attempt) => write!(f, "{attempt} does something again"),
            Report::SignalSent { attempt, signal } => write!(f, "{attempt} was sent {signal}"),
            Report::Checkpoints { attempt, source, result: CheckpointResult::Carried(bytes) } => {
                write!(f, "{bytes} of checkpoints were carried from {} for {attempt}", source.node)
            }
            Report::Checkpoints { attempt, source, result: CheckpointResult::Missing(_) } => {
                write!(f, "{attempt} starts without the checkpoints on {}", source.node)
            }
            Report::Allotted { attempt, host } => write!(f, "{attempt} has {host}"),
            Report::Condition { device, condition } => {
                write!(f, "{device} is {}, sharing {}", condition.health, condition.sharing)
            }
            Report::Telemetry(telemetry) => {
                write!(f, "telemetry of {}", counted(telemetry.len(), "device", "devices"))
            }
            Report::ColocationSamples(samples) => {
                f.write_str(&counted(samples.len(), "co-location sample", "co-location samples"))
            }
        }
    }
}

impl fmt::Display for LogLine<'_, Plan> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.0.actions.len(), "action", "actions"))
    }
}

impl fmt::Display for LogLine<'_, Effect> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Effect::SendOrder(key, order) => write!(f, "order to {key}: {}", LogLine(order)),
            Effect::Answer(client, reply) => write!(f, "answer client {}: {}", client.0, LogLine(reply)),
            Effect::Publish(job, Notice::Changed(revision)) => {
                write!(f, "publish {job}: revision {revision}")
            }
            Effect::Publish(job, Notice::Ended(record)) => {
                write!(f, "publish {job}: ended as {}", record.state)
            }
            Effect::RecordMisfit(misfit) => {
                write!(f, "record that {} found no memory on {}", misfit.rank, misfit.device)
            }
            Effect::RecordUsage(usage) => write!(f, "record what {} did with a GPU", usage.rank),
            Effect::Account(entry) => write!(f, "count for the reports of {}", entry.owner.user),
            Effect::AddToFeed(event) => write!(f, "add to the feed: {}", event.kind),
            Effect::Archive(part) => write!(f, "archive part {} of job {}", part.part, part.number),
            Effect::Plan(request) => write!(f, "request plan {}", request.0),
            Effect::Close(key, why) => write!(f, "close {key}: {why}"),
        }
    }
}

impl fmt::Display for LogLine<'_, Order> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Order::Run(run) => {
                write!(f, "run {} of {}", counted(run.ranks.len(), "rank", "ranks"), run.attempt)
            }
            Order::Stop { attempt, why } => write!(f, "stop {attempt} because {}", why.clause()),
            Order::Acknowledge(rank) => write!(f, "acknowledge the end of {rank}"),
            Order::Withdraw(attempt) => write!(f, "do not start {attempt}"),
            Order::Allot { attempt, host } => write!(f, "give {attempt} {host}"),
        }
    }
}

impl fmt::Display for LogLine<'_, Reply> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Reply::Accepted { job, members, notes: _ } => {
                write!(f, "accepted as {job} with {}", counted(*members, "member", "members"))
            }
            Reply::Changed(verdicts) => {
                let done = verdicts.iter().filter(|(_, verdict)| *verdict == ChangeResult::Done).count();
                write!(f, "{done} of {} changed", verdicts.len())
            }
            Reply::Node(name) => write!(f, "node {name}"),
            Reply::SharesApplied => f.write_str("shares applied"),
            Reply::Reservation(it) => write!(f, "reservation {}", it.number),
            Reply::Refused(refusal) => write!(f, "refused: {refusal}"),
        }
    }
}

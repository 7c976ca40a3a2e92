//! The rows of `squeue`, in the widths of its default format.

use cohabit_client::types::{JobRecord, JobState, ReasonCode, Span, Time};
use cohabit_console::printable_line;

use super::words::{index_list, slurm_id};
use crate::render::job_cells::runtime;

/// A row of `squeue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueueRow {
    job: String,
    partition: String,
    name: String,
    user: String,
    state: &'static str,
    time: String,
    nodes: String,
    place: String,
}

impl QueueRow {
    pub(super) fn of(job: &JobRecord, now: Time) -> QueueRow {
        let waits = matches!(job.state, JobState::Pending | JobState::Held | JobState::Preempted);
        QueueRow {
            job: slurm_id(job.id),
            partition: job.labels.partition.clone().unwrap_or_else(|| "cohabit".into()),
            name: job.name.clone(),
            user: job.user.clone(),
            state: state_code(job.state),
            time: clock(runtime(job, now).filter(|_| !waits).unwrap_or(Span::ZERO)),
            nodes: job.demand.nodes.to_string(),
            place: if waits { format!("({})", reason(job.reason_code)) } else { job.nodes().join(",") },
        }
    }

    /// One row for more members of an array than are listed.
    pub(super) fn of_many(array: &JobRecord, now: Time) -> QueueRow {
        QueueRow { job: format!("{}_[...]", array.id.number), ..QueueRow::of(array, now) }
    }

    /// One row for members that wait.
    pub(super) fn of_members(first: &JobRecord, members: &[&JobRecord], now: Time) -> QueueRow {
        let mut indices: Vec<u32> = members.iter().filter_map(|member| member.id.index).collect();
        indices.sort_unstable();
        QueueRow {
            job: format!("{}_[{}]", first.id.number, index_list(&indices)),
            ..QueueRow::of(first, now)
        }
    }
}

/// All rows, with a heading if it is wanted.
pub(super) fn queue_text(rows: &[QueueRow], has_heading: bool) -> String {
    let mut text = String::new();
    if has_heading {
        text += &line(["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"]);
    }
    for row in rows {
        let QueueRow { job, partition, name, user, state, time, nodes, place } = row;
        text += &line([job, partition, name, user, state, time, nodes, place]);
    }
    text.pop();
    text
}

/// `%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R`: what is too long is cut.
fn line([job, partition, name, user, state, time, nodes, place]: [&str; 8]) -> String {
    let fit = |text: &str, width: usize| {
        let text: String = printable_line(text).chars().take(width).collect();
        format!("{text:>width$} ")
    };
    let fields = [(job, 18), (partition, 9), (name, 8), (user, 8), (state, 2), (time, 10), (nodes, 6)];
    let fields: String = fields.into_iter().map(|(text, width)| fit(text, width)).collect();
    format!("{fields}{}\n", printable_line(place))
}

/// `D-HH:MM:SS`, `HH:MM:SS` or `M:SS`.
fn clock(span: Span) -> String {
    let seconds = span.as_micros() / 1_000_000;
    let (days, hours, minutes, rest) =
        (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{rest:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{rest:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{rest:02}"),
    }
}

/// Slurm's code of a state. It has none for a job that is held: it is pending with that reason.
pub(super) const fn state_code(state: JobState) -> &'static str {
    match state {
        JobState::Pending | JobState::Held => "PD",
        JobState::Running => "R",
        JobState::Completing => "CG",
        JobState::Completed => "CD",
        JobState::Failed => "F",
        JobState::Cancelled => "CA",
        JobState::Timeout => "TO",
        JobState::NodeFail => "NF",
        JobState::OutOfMemory => "OOM",
        JobState::Preempted => "PR",
    }
}

/// Slurm's word for why a job waits.
const fn reason(code: ReasonCode) -> &'static str {
    match code {
        ReasonCode::WaitingForNodes => "ReqNodeNotAvail",
        ReasonCode::WaitingForDevices | ReasonCode::WaitingForMemory | ReasonCode::WaitingForHost => {
            "Resources"
        }
        ReasonCode::WaitingForDependency => "Dependency",
        ReasonCode::WaitingForBegin | ReasonCode::WaitingForRetry => "BeginTime",
        ReasonCode::WaitingForArrayLimit => "JobArrayTaskLimit",
        ReasonCode::WaitingForUserLimit => "QOSMaxJobsPerUserLimit",
        ReasonCode::HeldByUser | ReasonCode::HeldAfterFaults => "JobHeldUser",
        ReasonCode::WaitingForTurn
        | ReasonCode::WaitingForVirtualTurn
        | ReasonCode::Running
        | ReasonCode::Stopping
        | ReasonCode::Completed
        | ReasonCode::ExitCode
        | ReasonCode::Signalled
        | ReasonCode::CouldNotStart
        | ReasonCode::CommandNotFound
        | ReasonCode::NotExecutable
        | ReasonCode::WorkdirMissing
        | ReasonCode::CancelledByUser
        | ReasonCode::TimeLimit
        | ReasonCode::NodeLost
        | ReasonCode::ExecutorLost
        | ReasonCode::DependencyFailed
        | ReasonCode::GpuOom
        | ReasonCode::MpsFaultVictim
        | ReasonCode::MpsFault
        | ReasonCode::DeviceLost
        | ReasonCode::SharingUnenforced
        | ReasonCode::MemoryLimit
        | ReasonCode::Oom
        | ReasonCode::ApplicationEnded
        | ReasonCode::Stalled
        | ReasonCode::Idle => "Priority",
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::JobId;

    use super::*;
    use crate::render::samples::{at, pending};

    #[test]
    fn rows_have_the_columns_of_squeue() {
        let running =
            JobRecord { state: JobState::Running, started_at: Some(at(0)), ended_at: None, ..pending() };
        let waiting = |index| JobRecord {
            id: JobId::member(13, index),
            state: JobState::Pending,
            reason_code: ReasonCode::WaitingForDevices,
            name: "a-name-that-is-too-long\u{1b}".into(),
            ..pending()
        };
        let members = [waiting(1), waiting(2), waiting(5)];
        let members: Vec<&JobRecord> = members.iter().collect();
        let rows = [
            QueueRow::of(&running, at(3_723)),
            QueueRow::of_members(members[0], &members, at(3_723)),
            QueueRow::of(
                &JobRecord { state: JobState::Held, reason_code: ReasonCode::HeldByUser, ..pending() },
                at(1),
            ),
        ];
        insta::assert_snapshot!(queue_text(&rows, true));
        assert!(!queue_text(&rows, false).contains("JOBID"));
        assert_eq!(queue_text(&[], false), "");
    }

    #[test]
    fn times_are_written_as_in_slurm() {
        let shown = [5, 65, 3_605, 90_061].map(|seconds| clock(Span::from_secs(seconds)));
        assert_eq!(shown, ["0:05", "1:05", "1:00:05", "1-01:01:01"]);
    }
}

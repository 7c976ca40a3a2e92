//! Says when nothing is heard of the node of a main, and when it is back: until then nothing of what it
//! prints arrives.

use std::convert::Infallible;
use std::time::Duration;

use cohabit_client::{Client, Error};
use cohabit_types::{JobEvent, JobEventKind, JobId, JobPhase, Span, Time};
use futures::TryStreamExt;
use tokio::time::sleep;

use crate::terminal::say;

/// How long a node is away before that is said: after a restart of the head all nodes are, for a moment.
const PATIENCE: Duration = Duration::from_secs(5);

const SECONDS_OF_A_DAY: u64 = 24 * 3_600;

/// A node of which nothing is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Absence {
    node: String,
    since: Time,
    /// When the head gives up what runs there.
    lost_after: Span,
}

/// Says it each time, and never returns but for an error.
pub(super) async fn tell_absences(client: &Client, main: JobId) -> Result<Infallible, Error> {
    let mut changes = client.job(main).watch();
    let (mut reason, mut told) = (String::new(), None);
    while let Some(record) = changes.try_next().await? {
        // The reason of a job changes when its node comes or goes.
        if record.state.phase() != JobPhase::Placed || record.reason == reason {
            continue;
        }
        reason = record.reason;
        let mut present = find(client, main).await?;
        if present.is_some() && told.is_none() {
            sleep(PATIENCE).await;
            present = find(client, main).await?;
        }
        match (&present, &told) {
            (Some(absence), None) => say(&absence.text(main)),
            (None, Some(Absence { node, .. })) => {
                say(&format!("node {node} is back: main, job {main}, goes on"));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        told = present;
    }
    std::future::pending().await
}

async fn find(client: &Client, main: JobId) -> Result<Option<Absence>, Error> {
    Ok(absence(&client.explain(main).await?.history))
}

/// Whether the last that is known of the place of a job is that it is away.
fn absence(history: &[JobEvent]) -> Option<Absence> {
    let last = history.iter().rev().find(|event| {
        matches!(
            event.kind,
            JobEventKind::NodeUnreachable { .. }
                | JobEventKind::Adopted(_)
                | JobEventKind::RankEnded { .. }
                | JobEventKind::AttemptLost { .. }
                | JobEventKind::Ended { .. }
        )
    })?;
    let JobEventKind::NodeUnreachable { node, lost_after } = &last.kind else { return None };
    Some(Absence { node: node.clone(), since: last.at, lost_after: *lost_after })
}

impl Absence {
    fn text(&self, main: JobId) -> String {
        let Absence { node, since, lost_after } = self;
        format!(
            "nothing has been heard of node {node}, where main (job {main}) runs, since {}: waits until it is back, or \
             for {lost_after}, when the head gives it up; `cohabit explain {main}` says more",
            time_of_day(*since)
        )
    }
}

fn time_of_day(at: Time) -> String {
    let seconds = at.as_secs_f64() as u64 % SECONDS_OF_A_DAY;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Cause, Outcome};

    use super::*;

    fn event(kind: JobEventKind) -> JobEvent {
        let at = Time::EPOCH + Span::from_secs(SECONDS_OF_A_DAY + 3_723);
        JobEvent { at, cause: Cause::Clock, kind }
    }

    #[test]
    fn a_node_is_away_until_something_is_heard_of_the_job() {
        let attempt = JobId::new(2).attempt(1);
        let lost_after = Span::from_secs(150);
        let away = event(JobEventKind::NodeUnreachable { node: "n2".into(), lost_after });
        let submitted = event(JobEventKind::Submitted);
        let absent = absence(&[submitted.clone(), away.clone(), submitted.clone()]).unwrap();
        assert_eq!(
            absent.text(attempt.job),
            "nothing has been heard of node n2, where main (job 2) runs, since 01:02:03 UTC: waits until it is back, \
             or for 2 min 30 s, when the head gives it up; `cohabit explain 2` says more"
        );
        let ended = JobEventKind::RankEnded { rank: attempt.rank(0), outcome: Outcome::Exited(0) };
        for later in [JobEventKind::Adopted(attempt), ended] {
            assert_eq!(absence(&[away.clone(), event(later)]), None);
        }
        assert_eq!(absence(&[submitted]), None);
    }
}

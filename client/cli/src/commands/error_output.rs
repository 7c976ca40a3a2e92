//! Reads the end of the standard error of a job that has failed, for `explain`. Whatever goes wrong on the
//! way is a sentence: what `explain` says else is worth more than this.

use std::time::Duration;

use cohabit_client::types::{
    FollowMode, JobId, JobRecord, JobState, LogPosition, LogRequest, LogStream, Outcome, RankId, RankRecord,
};
use cohabit_client::{Client, Error};
use cohabit_console::CommandError;
use tokio::time::timeout;

use crate::render::error_output::ErrorOutputDocument;

/// How long reading may take.
const LIMIT: Duration = Duration::from_secs(5);

/// How many lines before the end of both streams are searched for those of standard error.
const SEARCHED_LINES: u64 = 1_000;

/// How much of standard error is held, in bytes.
const MOST_HELD: usize = 64 << 10;

/// What the rank that made the job fail printed last to standard error; nothing of jobs that have not failed
/// or have never run.
pub(super) async fn error_output(client: &Client, job: JobId) -> Option<ErrorOutputDocument> {
    let record = timeout(LIMIT, client.job(job).record()).await.ok()?.ok()?;
    let (rank, node) = failed_rank(&record)?;
    let printed = match timeout(LIMIT, read_errors(client, rank)).await {
        Ok(printed) => printed.map_err(|error| CommandError::from(error).message),
        Err(_) => Err(format!("it could not be read within {} s", LIMIT.as_secs())),
    };
    Some(ErrorOutputDocument::new(rank, node, printed.as_deref().map_err(Clone::clone)))
}

/// The rank whose output tells most of why the job failed: one that failed by itself, rather than one that
/// was stopped because another had failed.
fn failed_rank(record: &JobRecord) -> Option<(RankId, String)> {
    if record.array.is_some() || !has_failed(record.state) {
        return None;
    }
    let ranks = &record.latest()?.ranks;
    let (number, rank) = ranks.iter().enumerate().min_by_key(|(_, rank)| precedence(rank))?;
    if matches!(rank.outcome, Some(Outcome::NotStarted(_))) {
        return None;
    }
    let number = u32::try_from(number).ok()?;
    Some((record.id.attempt(record.attempt).rank(number), rank.node.clone()))
}

const fn has_failed(state: JobState) -> bool {
    match state {
        JobState::Failed | JobState::Timeout | JobState::NodeFail | JobState::OutOfMemory => true,
        JobState::Pending
        | JobState::Held
        | JobState::Running
        | JobState::Completing
        | JobState::Completed
        | JobState::Cancelled
        | JobState::Preempted => false,
    }
}

/// The rank with the least number is shown.
const fn precedence(rank: &RankRecord) -> u8 {
    match &rank.outcome {
        Some(Outcome::OutOfGpuMemory { .. } | Outcome::OutOfMemory { .. }) => 0,
        Some(Outcome::Exited(code)) if *code != 0 => 0,
        Some(Outcome::Signalled(_)) => 1,
        Some(Outcome::Lost(_)) => 2,
        None | Some(Outcome::Exited(_)) => 3,
        Some(Outcome::NotStarted(_)) => 4,
    }
}

/// The latest of what a rank has printed to standard error.
async fn read_errors(client: &Client, rank: RankId) -> Result<Vec<u8>, Error> {
    let mut printed = Vec::new();
    let mut from = LogPosition::Tail(SEARCHED_LINES);
    loop {
        let chunk = client.read_log(LogRequest { rank, from, at_end: FollowMode::Return }).await?;
        for record in chunk.records.iter().filter(|record| record.stream == LogStream::Stderr) {
            printed.extend_from_slice(&record.bytes);
        }
        printed.drain(..printed.len().saturating_sub(MOST_HELD));
        if chunk.complete || chunk.records.is_empty() {
            return Ok(printed);
        }
        from = LogPosition::At(chunk.next);
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{AttemptRecord, Signal};

    use super::*;
    use crate::render::samples::{array, failed, pending, running};

    /// The rank that is chosen of a failed job whose ranks ended so.
    fn chosen(outcomes: &[Option<Outcome>]) -> Option<u32> {
        let sample = failed();
        let attempt = sample.attempts[0].clone();
        let rank = |outcome: &Option<Outcome>| {
            let outcome = outcome.clone();
            RankRecord { outcome, ..attempt.ranks[0].clone() }
        };
        let attempt = AttemptRecord { ranks: outcomes.iter().map(rank).collect(), ..attempt };
        failed_rank(&JobRecord { attempts: vec![attempt], ..sample }).map(|(rank, _)| rank.rank)
    }

    #[test]
    fn the_rank_that_failed_by_itself_is_chosen() {
        let killed = || Some(Outcome::Signalled(Signal::KILL));
        let exited = |code| Some(Outcome::Exited(code));
        assert_eq!(chosen(&[killed(), exited(0), exited(3), exited(4)]), Some(2));
        assert_eq!(chosen(&[exited(0), killed()]), Some(1));
        assert_eq!(chosen(&[exited(0), exited(0)]), Some(0));
        assert_eq!(chosen(&[exited(0), Some(Outcome::Lost("gone".into()))]), Some(1));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn jobs_that_have_not_failed_or_never_ran_have_no_such_output() {
        let never_ran = JobRecord { attempts: Vec::new(), attempt: 0, ..failed() };
        let cancelled = JobRecord { state: JobState::Cancelled, ..failed() };
        for record in [running(), pending(), array(), never_ran, cancelled] {
            assert_eq!(failed_rank(&record), None, "{} {}", record.id, record.state);
        }
        assert_eq!(failed_rank(&failed()).unwrap().1, "gpu1");
    }
}

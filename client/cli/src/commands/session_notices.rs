//! Tells somebody who works in a job what they might not notice: that the job does nothing, before it is
//! stopped for that, and that it is about to reach its time limit.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use cohabit_client::JobHandle;
use cohabit_client::types::{IdleRecord, JobId, JobRecord, JobState, Span, Time};
use futures::TryStreamExt as _;
use tokio::time::timeout;

use crate::clock::now;

/// How often it is looked whether there is something to tell, while nothing else happens.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// So long before its time limit a job is told of it; a short one when a quarter of its time is left.
const BEFORE_LIMIT: Span = Span::from_secs(600);

/// What was told already.
#[derive(Debug, Default, PartialEq)]
struct ToldNotices {
    /// The beginning of the stretch in which the job did nothing.
    idle_since: Option<Time>,
    /// The attempt of whose time limit was told.
    limit_of: Option<u32>,
}

/// Tells each thing once, as soon as the person can be told; never returns.
pub(super) async fn tell_notices(
    job: &JobHandle,
    can_be_told: impl Fn() -> bool,
    tell: impl Fn(&str),
) -> Infallible {
    let (mut records, mut latest, mut told) = (job.watch(), None, ToldNotices::default());
    loop {
        match timeout(LOOK_INTERVAL, records.try_next()).await {
            Ok(Ok(Some(record))) => latest = Some(record),
            // The session itself tells of the end, and of a head that is away for too long.
            Ok(Ok(None) | Err(_)) => return pending().await,
            Err(_elapsed) => {}
        }
        if let Some(record) = &latest
            && can_be_told()
        {
            told.due(record, now()).iter().for_each(|sentence| tell(sentence));
        }
    }
}

impl ToldNotices {
    /// What is to be told now, and counts as told from now on.
    fn due(&mut self, record: &JobRecord, now: Time) -> Vec<String> {
        let attempt = record.latest().filter(|_| record.state == JobState::Running);
        let Some(attempt) = attempt else { return Vec::new() };
        let mut sentences = Vec::new();
        if let Some(idle) = attempt.idle.filter(|idle| self.idle_since != Some(idle.since)) {
            sentences.extend(idle_notice(record.id, idle, now));
            self.idle_since = Some(idle.since);
        }
        let limit = record.time_limit.filter(|_| self.limit_of != Some(attempt.attempt));
        if let Some(limit) = limit {
            let left = (attempt.started_at + limit).since(now);
            if left <= BEFORE_LIMIT.min(Span::from_micros(limit.as_micros() / 4)) {
                sentences
                    .push(format!("job {} reaches its time limit in {left}, and is stopped then", record.id));
                self.limit_of = Some(attempt.attempt);
            }
        }
        sentences
    }
}

/// What is said of a job that is stopped for doing nothing.
fn idle_notice(job: JobId, idle: IdleRecord, now: Time) -> Option<String> {
    let left = |at: Time| match at.since(now) {
        Span::ZERO => "now".to_owned(),
        left => format!("in {left}"),
    };
    let (stop_from, stop_at) = (left(idle.stop_from?), left(idle.stop_at?));
    Some(format!(
        "job {job} has done nothing for {}. It is stopped {stop_from} if a job waits for its place, and {stop_at} \
         in any case; keys that are pressed do not count as work",
        now.since(idle.since)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    fn at(minutes: u64) -> Time {
        Time::EPOCH + Span::from_secs(minutes * 60)
    }

    #[test]
    fn the_times_are_counted_from_now() {
        let idle = IdleRecord { since: at(100), stop_from: Some(at(130)), stop_at: Some(at(580)) };
        let sentence = idle_notice(JobId::new(7), idle, at(120)).unwrap();
        assert_eq!(
            sentence,
            "job 7 has done nothing for 20 min 0 s. It is stopped in 10 min 0 s if a job waits for its place, and \
             in 7 h 40 min in any case; keys that are pressed do not count as work"
        );
        assert!(
            idle_notice(JobId::new(7), idle, at(140)).unwrap().contains("It is stopped now if a job waits")
        );
        assert_eq!(idle_notice(JobId::new(7), IdleRecord { stop_from: None, ..idle }, at(120)), None);
    }

    #[test]
    fn each_thing_is_told_once() {
        let mut record = samples::running();
        record.time_limit = Some(Span::from_secs(3_600));
        let attempt = record.attempts.last_mut().unwrap();
        attempt.started_at = at(0);
        attempt.idle = Some(IdleRecord { since: at(10), stop_from: Some(at(40)), stop_at: Some(at(60)) });
        let mut told = ToldNotices::default();
        assert_eq!(told.due(&record, at(30)).len(), 1, "that it does nothing");
        assert_eq!(told.due(&record, at(49)), [""; 0]);
        let limit = told.due(&record, at(50));
        assert!(limit[0].ends_with("reaches its time limit in 10 min 0 s, and is stopped then"), "{limit:?}");
        assert_eq!(told.due(&record, at(55)), [""; 0]);
        // Of a short time, when a quarter of it is left.
        record.time_limit = Some(Span::from_secs(240));
        let mut told = ToldNotices { idle_since: Some(at(10)), limit_of: None };
        assert_eq!((told.due(&record, at(2)).len(), told.due(&record, at(3)).len()), (0, 1));
    }
}

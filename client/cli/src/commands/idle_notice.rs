//! Tells somebody who works in a job that it does nothing, before it is stopped for that.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use cohabit_client::JobHandle;
use cohabit_client::types::{IdleRecord, JobId, Span, Time};
use futures::TryStreamExt as _;
use tokio::time::timeout;

use crate::clock::now;

/// How often it is asked whether the person can be told, while nothing else happens.
const RETRY: Duration = Duration::from_secs(1);

/// Tells of each stretch once, as soon as the person can be told; never returns.
pub(super) async fn tell_when_idle(
    job: &JobHandle,
    can_be_told: impl Fn() -> bool,
    tell: impl Fn(&str),
) -> Infallible {
    let (mut records, mut idle, mut told) = (job.watch(), None, None);
    loop {
        match timeout(RETRY, records.try_next()).await {
            Ok(Ok(Some(record))) => idle = record.latest().and_then(|attempt| attempt.idle),
            // The session itself tells of the end, and of a head that is away for too long.
            Ok(Ok(None) | Err(_)) => return pending().await,
            Err(_elapsed) => {}
        }
        if let Some(sentence) =
            idle.filter(|idle| told != Some(idle.since)).and_then(|it| notice(job.id(), it, now()))
            && can_be_told()
        {
            tell(&sentence);
            told = idle.map(|idle| idle.since);
        }
    }
}

/// What is said of a job that is stopped for doing nothing.
fn notice(job: JobId, idle: IdleRecord, now: Time) -> Option<String> {
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

    fn at(minutes: u64) -> Time {
        Time::EPOCH + Span::from_secs(minutes * 60)
    }

    #[test]
    fn the_times_are_counted_from_now() {
        let idle = IdleRecord { since: at(100), stop_from: Some(at(130)), stop_at: Some(at(580)) };
        let sentence = notice(JobId::new(7), idle, at(120)).unwrap();
        assert_eq!(
            sentence,
            "job 7 has done nothing for 20 min 0 s. It is stopped in 10 min 0 s if a job waits for its place, and \
             in 7 h 40 min in any case; keys that are pressed do not count as work"
        );
        assert!(notice(JobId::new(7), idle, at(140)).unwrap().contains("It is stopped now if a job waits"));
        assert_eq!(notice(JobId::new(7), IdleRecord { stop_from: None, ..idle }, at(120)), None);
    }
}

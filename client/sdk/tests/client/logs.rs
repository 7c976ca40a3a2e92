//! Logs: across pieces, broken links and attempts, and what is refused.

use std::net::SocketAddr;

use cohabit_client::types::{
    ArraySummary, AttemptRecord, FollowMode, JobId, JobRecord, JobState, LogChunk, LogPosition, LogRequest,
    RankRecord, RefusalCode, Share, Time,
};
use cohabit_client::{Client, Error, LogOptions};
use futures::TryStreamExt;

use crate::kit::{Call, Cluster, Turn, jobs, printed, refusal};
use crate::records::record;

const SEVEN: JobId = JobId::new(7);

async fn output(client: &Client, options: LogOptions) -> Result<String, Error> {
    let pieces: Vec<Vec<u8>> =
        client.logs(SEVEN, options).map_ok(|record| record.bytes).try_collect().await?;
    Ok(String::from_utf8(pieces.concat()).unwrap())
}

fn last(text: &str, next: u64) -> Turn {
    Turn::Log(LogChunk { complete: true, ..printed(text, next) })
}

fn in_attempt(attempt: u32, state: JobState, revision: u64) -> JobRecord {
    JobRecord { attempt, ..record(state, revision) }
}

/// Where pieces were asked from: attempt and position.
fn asked(calls: &[Call]) -> Vec<(u32, LogPosition)> {
    let place = |call: &Call| {
        let Call::ReadLog(LogRequest { rank, from, .. }) = call else { return None };
        Some((rank.attempt.attempt, *from))
    };
    calls.iter().filter_map(place).collect()
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[tokio::test]
async fn output_printed_so_far_is_read_to_its_end() {
    let cluster = Cluster::new();
    let turns = [
        jobs([record(JobState::Running, 1)]),
        Turn::Log(printed("one ", 4)),
        Turn::Log(printed("two", 7)),
        Turn::Log(printed("", 7)),
    ];
    let head = cluster.head(turns).await;
    let options = LogOptions { from: LogPosition::Tail(2), ..LogOptions::default() };
    assert_eq!(output(&cluster.client_of(head.address), options).await.unwrap(), "one two");
    assert_eq!(
        asked(&head.calls()),
        [(1, LogPosition::Tail(2)), (1, LogPosition::At(4)), (1, LogPosition::At(7))]
    );
}

#[tokio::test]
async fn a_job_that_never_ran_has_printed_nothing() {
    let cluster = Cluster::new();
    let head = cluster.head([jobs([record(JobState::Pending, 1)])]).await;
    assert_eq!(output(&cluster.client_of(head.address), LogOptions::default()).await.unwrap(), "");
    assert_eq!(asked(&head.calls()), []);
}

#[tokio::test]
async fn following_waits_for_the_start_and_continues_with_the_next_attempt() {
    let cluster = Cluster::new();
    let turns = [
        jobs([record(JobState::Pending, 1)]),
        jobs([in_attempt(1, JobState::Running, 2)]),
        Turn::Log(printed("first ", 6)),
        Turn::Log(printed("", 6)),
        last("try; ", 11),
        jobs([in_attempt(1, JobState::Pending, 3)]),
        jobs([in_attempt(2, JobState::Running, 4)]),
        last("second try", 10),
        jobs([in_attempt(2, JobState::Completed, 5)]),
    ];
    let head = cluster.head(turns).await;
    let printed = output(&cluster.client_of(head.address), LogOptions::follow()).await.unwrap();
    assert_eq!(printed, "first try; second try");
    let expected =
        [(1, LogPosition::Start), (1, LogPosition::At(6)), (1, LogPosition::At(6)), (2, LogPosition::Start)];
    assert_eq!(asked(&head.calls()), expected);
}

#[tokio::test]
async fn following_one_attempt_ends_with_it() {
    let cluster = Cluster::new();
    let head = cluster.head([jobs([in_attempt(2, JobState::Running, 1)]), last("first try", 9)]).await;
    let options = LogOptions { attempt: Some(1), ..LogOptions::follow() };
    assert_eq!(output(&cluster.client_of(head.address), options).await.unwrap(), "first try");
}

#[tokio::test]
async fn a_broken_link_neither_loses_nor_repeats_output() {
    let cluster = Cluster::new();
    let turns = [
        jobs([record(JobState::Running, 1)]),
        Turn::Log(printed("one ", 4)),
        Turn::Cut,
        last("two", 7),
        jobs([record(JobState::Completed, 2)]),
    ];
    let head = cluster.head(turns).await;
    assert_eq!(output(&cluster.client_of(head.address), LogOptions::follow()).await.unwrap(), "one two");
    assert_eq!(
        asked(&head.calls()),
        [(1, LogPosition::Start), (1, LogPosition::At(4)), (1, LogPosition::At(4))]
    );
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a head has no news for any other call")]
#[tokio::test]
async fn following_waits_for_an_absent_worker_until_the_next_attempt() {
    let cluster = Cluster::new();
    let mut refused = 0;
    let head = cluster.head_with(anywhere(), move |call| match call {
        Call::ReadLog(request) if request.rank.attempt.attempt == 1 => {
            refused += 1;
            Turn::Refuse(refusal(RefusalCode::Unavailable))
        }
        Call::ReadLog(_) => last("second try", 10),
        Call::Show(_) => jobs([in_attempt(1, JobState::Running, 1)]),
        Call::Watch(known) if refused > 2 && known[0].revision == 1 => {
            jobs([in_attempt(2, JobState::Running, 2)])
        }
        Call::Watch(known) if known[0].revision == 2 => jobs([in_attempt(2, JobState::Completed, 3)]),
        _ => Turn::Wait,
    });
    let head = head.await;
    let printed = output(&cluster.client_of(head.address), LogOptions::follow()).await.unwrap();
    assert_eq!(printed, "second try");
}

#[tokio::test]
async fn output_that_is_gone_for_good_is_an_error() {
    let cluster = Cluster::new();
    let gone = Turn::Refuse(refusal(RefusalCode::Unavailable));
    let head = cluster.head([jobs([record(JobState::Failed, 1)]), gone]).await;
    let result = output(&cluster.client_of(head.address), LogOptions::follow()).await;
    assert!(
        matches!(&result, Err(Error::Refused(why)) if why.code == RefusalCode::Unavailable),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_job_without_output_is_refused_with_a_message() {
    let refused = async |record: JobRecord, options: LogOptions| {
        let cluster = Cluster::new();
        let head = cluster.head([jobs([record])]).await;
        output(&cluster.client_of(head.address), options).await.unwrap_err().to_string()
    };
    let running = || in_attempt(1, JobState::Running, 1);
    let array = JobRecord { array: Some(ArraySummary::default()), ..running() };
    assert!(refused(array, LogOptions::default()).await.contains("name one of its members"));

    let third = LogOptions { attempt: Some(3), ..LogOptions::default() };
    assert!(refused(running(), third).await.contains("has no attempt 3"));

    let rank = RankRecord {
        node: "n".into(),
        devices: Vec::new(),
        share: Share::WHOLE,
        outcome: None,
        enforcement: None,
        gpu_memory: None,
        host_limits: None,
        private_uid: None,
    };
    let attempt = AttemptRecord {
        attempt: 1,
        started_at: Time::EPOCH,
        ended_at: None,
        stopped: None,
        ranks: vec![rank],
        host: Vec::new(),
        idle: None,
    };
    let fifth = LogOptions { rank: 5, at_end: FollowMode::Wait, ..LogOptions::default() };
    let record = JobRecord { attempts: vec![attempt], ..running() };
    assert!(refused(record, fifth).await.contains("has no rank 5"));
}

#[tokio::test]
async fn parts_name_their_rank_and_the_dropped_output() {
    let cluster = Cluster::new();
    let dropped = LogChunk { dropped: 100, ..printed("", 100) };
    let head =
        cluster.head([jobs([record(JobState::Failed, 1)]), Turn::Log(dropped.clone()), last("x", 101)]).await;
    let parts: Vec<_> =
        cluster.client_of(head.address).log_parts(SEVEN, LogOptions::default()).try_collect().await.unwrap();
    assert!(parts.iter().all(|part| part.rank == SEVEN.attempt(1).rank(0)));
    assert_eq!(parts.iter().map(|part| part.chunk.dropped).collect::<Vec<_>>(), [100, 0]);
}

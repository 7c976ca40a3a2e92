//! The output of ranks, read over the link.

use cohabit_types::{FollowMode, LogPosition, LogStream, RefusalCode};

use crate::kit::{Cluster, rank, run, shell, soon, until};

#[tokio::test]
async fn output_is_followed_while_it_is_printed() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let go = cluster.path().join("go");
    head.order(run(1, shell(&format!("echo one; {}; echo two >&2", until(&go))))).await;
    head.started(rank(1)).await;
    let first =
        soon("the first line", head.read_log(rank(1), LogPosition::Start, FollowMode::Wait)).await.unwrap();
    assert_eq!((first.records[0].bytes.as_slice(), first.complete), (&b"one\n"[..], false));
    let nothing = head.read_log(rank(1), LogPosition::At(first.next), FollowMode::Return).await.unwrap();
    assert_eq!((nothing.records.len(), nothing.next, nothing.complete), (0, first.next, false));
    let (second, ()) = tokio::join!(
        soon("the second line", head.read_log(rank(1), LogPosition::At(first.next), FollowMode::Wait)),
        async { std::fs::write(&go, "").unwrap() },
    );
    let second = second.unwrap();
    assert_eq!(
        (second.records[0].bytes.as_slice(), second.records[0].stream),
        (&b"two\n"[..], LogStream::Stderr)
    );
    assert!(second.records[0].at >= first.records[0].at);
    assert_eq!(head.followed(rank(1)).await, "one\ntwo\n");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn the_last_lines_of_an_ended_rank_can_be_read() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(run(1, shell("seq 1 1000"))).await;
    head.ended(rank(1)).await;
    let tail = head.read_log(rank(1), LogPosition::Tail(2), FollowMode::Wait).await.unwrap();
    let text: Vec<u8> = tail.records.into_iter().flat_map(|record| record.bytes).collect();
    assert_eq!((text.as_slice(), tail.complete), (&b"999\n1000\n"[..], true));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn output_of_an_unknown_rank_is_refused() {
    let mut cluster = Cluster::new().await;
    let (daemon, head) = cluster.worker().await;
    let refusal = head.read_log(rank(9), LogPosition::Start, FollowMode::Wait).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::NotFound);
    daemon.stop().await.unwrap();
}

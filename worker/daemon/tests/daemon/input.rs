//! The standard input of ranks, sent over the link.

use cohabit_types::{INPUT_PIECE, InputPiece, JobInput, JobSpec, RankId, RefusalCode};

use crate::kit::{Cluster, rank, run, shell};

fn reader(script: &str) -> JobSpec {
    JobSpec { input: JobInput::Sent, ..shell(script) }
}

fn piece(rank: RankId, offset: u64, bytes: &[u8]) -> InputPiece {
    InputPiece { rank, offset, bytes: bytes.to_vec(), is_last: false }
}

fn last(piece: InputPiece) -> InputPiece {
    InputPiece { is_last: true, ..piece }
}

#[tokio::test]
async fn pieces_arrive_once_and_in_order_however_often_they_are_sent() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(run(1, reader("cat"))).await;
    head.started(rank(1)).await;
    assert_eq!(head.write_input(piece(rank(1), 0, b"one\n")).await, Ok(4));
    assert_eq!(head.write_input(piece(rank(1), 0, b"one\n")).await, Ok(4), "it is there already");
    assert_eq!(head.write_input(piece(rank(1), 2, b"e\ntwo\n")).await, Ok(8), "a part of it is there");
    assert_eq!(
        head.write_input(last(piece(rank(1), 20, b"late"))).await,
        Ok(8),
        "what comes before it is not"
    );
    assert_eq!(head.write_input(last(piece(rank(1), 8, b""))).await, Ok(8));
    assert_eq!(head.followed(rank(1)).await, "one\ntwo\n");
    head.ended(rank(1)).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_rank_reads_on_while_another_daemon_takes_its_input() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(run(1, reader("read a; read b; echo $b $a"))).await;
    head.started(rank(1)).await;
    assert_eq!(head.write_input(piece(rank(1), 0, b"one\n")).await, Ok(4));
    daemon.stop().await.unwrap();
    let (daemon, mut head) = cluster.worker().await;
    assert_eq!(head.write_input(piece(rank(1), 4, b"two\n")).await, Ok(8));
    assert_eq!(head.followed(rank(1)).await, "two one\n");
    head.ended(rank(1)).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn what_reads_no_input_takes_none() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = |answer: Result<u64, cohabit_types::Refusal>| answer.unwrap_err().code;
    head.order(run(1, shell("cat; sleep 1000"))).await;
    head.started(rank(1)).await;
    assert_eq!(code(head.write_input(piece(rank(1), 0, b"x")).await), RefusalCode::WrongState);
    let unknown = rank(9);
    assert_eq!(code(head.write_input(piece(unknown, 0, b"x")).await), RefusalCode::Unavailable);
    head.order(run(2, reader("true"))).await;
    head.ended(rank(2)).await;
    assert_eq!(code(head.write_input(piece(rank(2), 0, b"x")).await), RefusalCode::Unavailable);
    let too_long = piece(rank(1), 0, &vec![0; INPUT_PIECE + 1]);
    assert_eq!(code(head.write_input(too_long).await), RefusalCode::Invalid);
    daemon.stop().await.unwrap();
}

//! The standard input of ranks, sent over the link.

use cohabit_types::{
    INPUT_PIECE, InputPiece, JobInput, JobSpec, Outcome, RankId, RefusalCode, TerminalSize, Typist,
};

use crate::kit::{Cluster, rank, run, shell};

fn reader(script: &str) -> JobSpec {
    JobSpec { input: JobInput::Sent, ..shell(script) }
}

fn piece(rank: RankId, offset: u64, bytes: &[u8]) -> InputPiece {
    InputPiece { rank, process: None, offset, bytes: bytes.to_vec(), is_last: false, typist: None }
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

fn typed(rank: RankId, offset: u64, bytes: &[u8], number: u64) -> InputPiece {
    let size = TerminalSize { rows: 40, columns: 100 };
    InputPiece { typist: Some(Typist { number, size }), ..piece(rank, offset, bytes) }
}

fn with_terminal(script: &str) -> JobSpec {
    JobSpec { input: JobInput::Terminal(TerminalSize { rows: 7, columns: 9 }), ..shell(script) }
}

#[tokio::test]
async fn keys_of_several_clients_reach_a_terminal_which_takes_their_size() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let script =
        "stty -echo; stty size; read a; read b; stty size; echo $a $b; test -t 0 && test -t 1 && test -t 2";
    head.order(run(1, with_terminal(script))).await;
    head.started(rank(1)).await;
    head.printed(rank(1), "7 9\r\n").await;
    assert_eq!(head.write_input(typed(rank(1), 0, b"on", 1)).await, Ok(2));
    assert_eq!(head.write_input(typed(rank(1), 0, b"one\r", 1)).await, Ok(4), "a part of it is there");
    daemon.stop().await.unwrap();
    let (daemon, mut head) = cluster.worker().await;
    assert_eq!(head.write_input(typed(rank(1), 0, b"one\r", 1)).await, Ok(4), "another daemon knows it, too");
    assert_eq!(head.write_input(typed(rank(1), 0, b"two\r", 2)).await, Ok(4));
    assert_eq!(head.followed(rank(1)).await, "7 9\r\n40 100\r\none two\r\n");
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn only_a_terminal_is_typed_into() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = |answer: Result<u64, cohabit_types::Refusal>| answer.unwrap_err().code;
    head.order(run(1, reader("cat"))).await;
    head.started(rank(1)).await;
    head.order(run(2, with_terminal("read line"))).await;
    head.started(rank(2)).await;
    assert_eq!(code(head.write_input(typed(rank(1), 0, b"x", 1)).await), RefusalCode::WrongState);
    assert_eq!(code(head.write_input(piece(rank(2), 0, b"x")).await), RefusalCode::WrongState);
    let too_long = typed(rank(2), 0, &vec![0; INPUT_PIECE + 1], 1);
    assert_eq!(code(head.write_input(too_long).await), RefusalCode::Invalid);
    assert_eq!(head.write_input(typed(rank(2), 0, b"\r", 1)).await, Ok(1));
    head.ended(rank(2)).await;
    assert_eq!(code(head.write_input(typed(rank(2), 1, b"x", 1)).await), RefusalCode::Unavailable);
    daemon.stop().await.unwrap();
}

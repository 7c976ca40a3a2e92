//! Further processes beside ranks, started over the link.

use std::collections::BTreeMap;

use cohabit_types::{ExecId, ExecRead, ExecRequest, InputPiece, LogPosition, Outcome, RankId, RefusalCode};

use crate::kit::{Cluster, Joined, rank, run, shell};

fn request(rank: RankId, number: u64, script: &str) -> ExecRequest {
    let argv = ["sh", "-c", script].map(str::to_owned).into();
    ExecRequest { id: ExecId { rank, number }, argv, environment: BTreeMap::new(), terminal: None }
}

/// All that it prints, and how it ends.
async fn finished(head: &Joined, id: ExecId) -> (String, Outcome) {
    let (mut text, mut from) = (Vec::new(), LogPosition::Start);
    loop {
        let read = head.read_exec(ExecRead { id, from }).await.unwrap();
        from = LogPosition::At(read.chunk.next);
        text.extend(read.chunk.records.into_iter().flat_map(|record| record.bytes));
        if let Some(outcome) = read.outcome {
            return (String::from_utf8(text).unwrap(), outcome);
        }
    }
}

#[tokio::test]
async fn a_process_runs_in_the_environment_of_its_rank_through_another_daemon() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(run(1, shell("sleep 100000"))).await;
    head.started(rank(1)).await;
    let request = request(rank(1), 7, "read line; echo $COHABIT_JOB_ID $line; exit 3");
    head.start_exec(request.clone()).await.unwrap();
    head.start_exec(request.clone()).await.unwrap();
    daemon.stop().await.unwrap();
    let (daemon, head) = cluster.worker().await;
    let piece = InputPiece {
        rank: rank(1),
        process: Some(7),
        offset: 0,
        bytes: b"hello\n".to_vec(),
        is_last: true,
        typist: None,
    };
    assert_eq!(head.write_input(piece).await, Ok(6));
    assert_eq!(finished(&head, request.id).await, ("1 hello\n".into(), Outcome::Exited(3)));
    head.end_exec(request.id).await.unwrap();
    let gone = head.read_exec(ExecRead { id: request.id, from: LogPosition::Start }).await;
    assert_eq!(gone.unwrap_err().code, RefusalCode::NotFound);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn only_a_rank_that_runs_takes_processes_and_few_of_them() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = |answer: Result<(), cohabit_types::Refusal>| answer.unwrap_err().code;
    assert_eq!(code(head.start_exec(request(rank(9), 1, "true")).await), RefusalCode::Unavailable);
    head.order(run(1, shell("sleep 100000"))).await;
    head.started(rank(1)).await;
    let no_command = ExecRequest { argv: Vec::new(), ..request(rank(1), 1, "") };
    assert_eq!(code(head.start_exec(no_command).await), RefusalCode::Invalid);
    for number in 0..8 {
        head.start_exec(request(rank(1), number, "sleep 100000")).await.unwrap();
    }
    assert_eq!(code(head.start_exec(request(rank(1), 8, "true")).await), RefusalCode::WrongState);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_process_that_cannot_start_says_why() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(run(1, shell("sleep 100000"))).await;
    head.started(rank(1)).await;
    let request = ExecRequest { argv: vec!["no-such-program".into()], ..request(rank(1), 7, "") };
    head.start_exec(request.clone()).await.unwrap();
    let (text, outcome) = finished(&head, request.id).await;
    assert_eq!((text.as_str(), outcome.shell_code()), ("", 127));
    daemon.stop().await.unwrap();
}

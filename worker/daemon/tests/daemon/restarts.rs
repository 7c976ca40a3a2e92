//! Ranks keep running while worker daemons restart.

use cohabit_types::{HeldRank, HeldRankPhase, Order, Outcome, Signal, Span, StopReason};

use crate::kit::{Cluster, is_alive, rank, run, shell, until, wait_for};
use crate::runs::kill_executor;

#[tokio::test]
async fn a_new_daemon_adopts_a_running_rank() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let go = cluster.path().join("go");
    head.order(run(1, shell(&format!("echo before; {}; echo after; exit 4", until(&go))))).await;
    head.started(rank(1)).await;
    drop((daemon, head));
    cluster.abandoned().await;
    let (daemon, mut head) = cluster.worker().await;
    let [HeldRank { rank: found, phase: HeldRankPhase::Running(_) }] = head.held() else { panic!() };
    assert_eq!(*found, rank(1));
    head.started(rank(1)).await;
    std::fs::write(&go, "").unwrap();
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(4));
    assert_eq!(head.followed(rank(1)).await, "before\nafter\n");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_new_daemon_reports_a_rank_that_ended_meanwhile() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let go = cluster.path().join("go");
    head.order(run(1, shell(&format!("echo '{{\"step\": 8}}' > $COHABIT_PROGRESS; {}; exit 9", until(&go)))))
        .await;
    head.started(rank(1)).await;
    daemon.stop().await.unwrap();
    drop(head);
    std::fs::write(&go, "").unwrap();
    let outcome = cluster.folder_of(rank(1)).join("outcome.json");
    wait_for("the outcome", || outcome.exists()).await;
    let (daemon, mut head) = cluster.worker().await;
    assert_eq!(head.held(), [HeldRank { rank: rank(1), phase: HeldRankPhase::Ended }]);
    let end = head.ended(rank(1)).await;
    assert_eq!((end.outcome, end.progress.map(|p| p.step)), (Outcome::Exited(9), Some(8)));
    head.order(Order::Acknowledge(rank(1))).await;
    wait_for("the acknowledgement", || !outcome.exists()).await;
    daemon.stop().await.unwrap();
    drop(head);
    let (daemon, head) = cluster.worker().await;
    assert_eq!(head.held(), []);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn an_adopted_rank_can_be_stopped() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(run(1, shell("while :; do sleep 0.02; done"))).await;
    head.started(rank(1)).await;
    daemon.stop().await.unwrap();
    drop(head);
    let (daemon, mut head) = cluster.worker().await;
    head.order(Order::Stop { attempt: rank(1).attempt, why: StopReason::Requeued }).await;
    let end = head.ended(rank(1)).await;
    assert_eq!((end.outcome, end.stopped), (Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued)));
    daemon.stop().await.unwrap();
}

/// The rank ignores SIGTERM, so only a stop that continues ends it.
#[tokio::test]
async fn a_stop_continues_after_a_restart_and_keeps_its_reason() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let (asked, listens) = (cluster.path().join("asked"), cluster.path().join("listens"));
    let trap = format!("trap 'echo > {}' TERM; echo > {}", asked.display(), listens.display());
    let mut stubborn = shell(&format!("{trap}; while :; do sleep 0.02; done"));
    stubborn.stop.grace = Span::from_secs(2);
    head.order(run(1, stubborn)).await;
    head.started(rank(1)).await;
    wait_for("the trap", || listens.exists()).await;
    head.order(Order::Stop { attempt: rank(1).attempt, why: StopReason::Preempted }).await;
    wait_for("SIGTERM", || asked.exists()).await;
    daemon.stop().await.unwrap();
    drop(head);
    let (daemon, mut head) = cluster.worker().await;
    let end = head.ended(rank(1)).await;
    assert_eq!((end.outcome, end.stopped), (Outcome::Signalled(Signal::KILL), Some(StopReason::Preempted)));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_rank_that_a_stop_ends_without_a_daemon_keeps_the_reason() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let [asked, listens, go] = ["asked", "listens", "go"].map(|name| cluster.path().join(name));
    let save = format!("echo > {}; {}; exit 5", asked.display(), until(&go));
    let trap = format!("trap '{save}' TERM; echo > {}", listens.display());
    head.order(run(1, shell(&format!("{trap}; while :; do sleep 0.02; done")))).await;
    head.started(rank(1)).await;
    wait_for("the trap", || listens.exists()).await;
    head.order(Order::Stop { attempt: rank(1).attempt, why: StopReason::MpsFaultVictim }).await;
    wait_for("SIGTERM", || asked.exists()).await;
    daemon.stop().await.unwrap();
    drop(head);
    std::fs::write(&go, "").unwrap();
    let outcome = cluster.folder_of(rank(1)).join("outcome.json");
    wait_for("the outcome", || outcome.exists()).await;
    let (daemon, mut head) = cluster.worker().await;
    let end = head.ended(rank(1)).await;
    assert_eq!((end.outcome, end.stopped), (Outcome::Exited(5), Some(StopReason::MpsFaultVictim)));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_rank_whose_executor_died_without_a_daemon_is_lost() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let pid = cluster.path().join("pid");
    head.order(run(1, shell(&format!("echo $$ > {}; while :; do sleep 0.02; done", pid.display())))).await;
    head.started(rank(1)).await;
    wait_for("the rank's first line", || {
        std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
    })
    .await;
    daemon.stop().await.unwrap();
    drop(head);
    kill_executor(&cluster, 1);
    let (daemon, mut head) = cluster.worker().await;
    assert!(matches!(head.ended(rank(1)).await.outcome, Outcome::Lost(_)));
    assert!(!is_alive(std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap()));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_rank_is_stopped_if_no_daemon_returns_in_time() {
    let mut cluster = Cluster::new().await;
    let mut options = cluster.options();
    options.orphan_grace = Span::from_millis(300);
    let (daemon, mut head) = cluster.worker_with(options).await;
    head.order(run(1, shell("while :; do sleep 0.02; done"))).await;
    head.started(rank(1)).await;
    daemon.stop().await.unwrap();
    drop(head);
    let outcome = cluster.folder_of(rank(1)).join("outcome.json");
    wait_for("the outcome", || outcome.exists()).await;
    let (daemon, mut head) = cluster.worker().await;
    let end = head.ended(rank(1)).await;
    assert_eq!((end.outcome, end.stopped), (Outcome::Signalled(Signal::TERM), Some(StopReason::Orphaned)));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_rank_is_stopped_if_the_head_stays_unreachable() {
    let mut cluster = Cluster::new().await;
    let mut options = cluster.options();
    options.orphan_grace = Span::from_millis(300);
    let (daemon, mut head) = cluster.worker_with(options).await;
    head.order(run(1, shell("while :; do sleep 0.02; done"))).await;
    head.started(rank(1)).await;
    // The worker connects at once, and is not accepted until the rank has ended.
    head.session.close();
    let outcome = cluster.folder_of(rank(1)).join("outcome.json");
    wait_for("the outcome", || outcome.exists()).await;
    let mut head = cluster.joined().await;
    assert_eq!(head.ended(rank(1)).await.stopped, Some(StopReason::Orphaned));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn an_end_is_reported_over_every_link_until_it_is_acknowledged() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(run(1, shell("exit 2"))).await;
    head.ended(rank(1)).await;
    head.session.close();
    let mut head = cluster.joined().await;
    assert_eq!(head.held(), [HeldRank { rank: rank(1), phase: HeldRankPhase::Ended }]);
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(2));
    head.order(Order::Acknowledge(rank(1))).await;
    head.session.close();
    let head = cluster.joined().await;
    assert_eq!(head.held(), []);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_reused_job_number_starts_with_a_fresh_directory() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    for text in ["first", "second"] {
        head.order(run(1, shell(&format!("echo {text}")))).await;
        assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
        assert_eq!(head.followed(rank(1)).await, format!("{text}\n"));
        head.order(Order::Acknowledge(rank(1))).await;
    }
    daemon.stop().await.unwrap();
}

/// The first two leave no trace of being started; the others look as if they had been assigned.
#[tokio::test]
async fn a_rank_whose_daemon_dies_while_assigning_it_never_started_or_is_lost() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(run(1, shell("exit 0"))).await;
    head.ended(rank(1)).await;
    head.order(Order::Acknowledge(rank(1))).await;
    let given = cluster.folder_of(rank(1));
    wait_for("the acknowledgement", || given.join("acknowledged.json").exists()).await;
    daemon.stop().await.unwrap();
    drop(head);
    let read = |name| std::fs::read_to_string(given.join(name)).unwrap();
    let (start, executor) = (read("start.json"), read("executor.json"));
    let leave = |job: u64, files: &[(&str, &str)]| {
        let folder = cluster.folder_of(rank(job));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, content) in files {
            std::fs::write(folder.join(name), content.replace("\"1#1/0\"", &format!("\"{job}#1/0\"")))
                .unwrap();
        }
        folder
    };
    leave(2, &[]);
    leave(3, &[("start.json", &start[..start.len() / 2])]);
    leave(4, &[("start.json", &start)]);
    leave(5, &[("start.json", &start), ("executor.json", &executor)]);
    let socket = leave(6, &[("start.json", &start), ("executor.json", &executor), ("executor.log", "")]);
    drop(std::os::unix::net::UnixListener::bind(socket.join("socket")).unwrap());
    leave(7, &[("start.json", &start), ("outcome.new", "{\"ending\":")]);
    let (daemon, mut head) = cluster.worker().await;
    let held = [4, 5, 6, 7].map(|job| HeldRank { rank: rank(job), phase: HeldRankPhase::Ended });
    assert_eq!(head.held(), held);
    for job in [4, 5, 6, 7] {
        assert!(matches!(head.ended(rank(job)).await.outcome, Outcome::Lost(_)));
    }
    assert!([2, 3].iter().all(|job| !cluster.folder_of(rank(*job)).exists()));
    daemon.stop().await.unwrap();
}

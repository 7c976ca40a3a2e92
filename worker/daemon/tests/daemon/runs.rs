//! Running ranks by order of a head.

use cohabit_types::{HostShare, Order, Outcome, Report, Signal, Span, StartFailure, StopReason};
use cohabit_worker_daemon::ExecutorProgram;

use crate::kit::{Cluster, End, is_alive, rank, run, run_to_meet, shell, until, wait_for};

#[tokio::test]
async fn a_rank_runs_reports_and_is_forgotten() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let go = cluster.path().join("go");
    let progress = "echo '{\"step\": 3, \"total\": 9}' >> $COHABIT_PROGRESS";
    head.order(run(1, shell(&format!("{progress}; {}; exit 7", until(&go))))).await;
    head.started(rank(1)).await;
    std::fs::write(&go, "").unwrap();
    let end = head.ended(rank(1)).await;
    assert_eq!((end.outcome, end.stopped), (Outcome::Exited(7), None));
    assert_eq!(end.progress.map(|p| (p.step, p.total)), Some((3, Some(9))));
    head.order(Order::Acknowledge(rank(1))).await;
    let folder = cluster.folder_of(rank(1));
    wait_for("the outcome to be put aside", || !folder.join("outcome.json").exists()).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_very_short_rank_is_reported_completely() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    for job in 1..=20 {
        head.order(run(job, shell("exit 0"))).await;
    }
    let ends = head.all_ended((1..=20).map(rank)).await;
    assert!(ends.iter().all(|end| end.outcome == Outcome::Exited(0)), "{ends:?}");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn the_environment_has_the_variables_of_head_worker_and_job() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let mut spec = shell("env");
    spec.environment.insert("ANSWER".into(), "42".into());
    let port = head.inventory.rendezvous_ports[0];
    head.order(run_to_meet(1, spec, port)).await;
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    let printed = head.followed(rank(1)).await;
    for line in ["ANSWER=42", "COHABIT_JOB_ID=1", "COHABIT_ATTEMPT=1", "MASTER_ADDR=127.0.0.1"] {
        assert!(printed.lines().any(|printed| printed == line), "{line} is missing in {printed}");
    }
    assert!(printed.contains(&format!("MASTER_PORT={port}\n")));
    assert!(printed.contains("COHABIT_CHECKPOINT_DIR=") && printed.contains("/checkpoints/1\n"));
    assert!(!printed.contains("CARGO"), "the environment of the daemon leaks: {printed}");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_rank_does_not_start_if_its_rendezvous_port_is_in_use() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let port = head.inventory.rendezvous_ports[0];
    let other = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    head.order(run_to_meet(1, shell("true"), port)).await;
    let taken = Outcome::NotStarted(StartFailure::PortTaken(port));
    assert_eq!(head.ended(rank(1)).await, End { outcome: taken, stopped: None, progress: None });
    drop(other);
    head.order(run_to_meet(2, shell("true"), port)).await;
    assert_eq!(head.ended(rank(2)).await.outcome, Outcome::Exited(0));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_failed_start_is_reported_with_its_reason() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let spec = cohabit_types::JobSpec::command(vec!["no-such-program".into()], "/".into());
    head.order(run(1, spec)).await;
    let failure = StartFailure::CommandNotFound("no-such-program".into());
    assert_eq!(
        head.ended(rank(1)).await,
        End { outcome: Outcome::NotStarted(failure), stopped: None, progress: None }
    );
    let mut spec = shell("true");
    spec.workdir = "/no/such/folder".into();
    head.order(run(2, spec)).await;
    let failure = StartFailure::WorkdirMissing("/no/such/folder".into());
    assert_eq!(head.ended(rank(2)).await.outcome, Outcome::NotStarted(failure));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn an_executor_that_cannot_be_started_is_a_problem_of_the_node() {
    let mut cluster = Cluster::new().await;
    let mut options = cluster.options();
    options.executor_program = ExecutorProgram::At("/no/such/program".into());
    let (daemon, mut head) = cluster.worker_with(options).await;
    head.order(run(1, shell("true"))).await;
    let Outcome::NotStarted(StartFailure::NodeProblem(why)) = head.ended(rank(1)).await.outcome else {
        panic!("the node is not at fault");
    };
    assert!(why.contains("/no/such/program"), "{why}");
    head.order(Order::Acknowledge(rank(1))).await;
    let folder = cluster.folder_of(rank(1));
    wait_for("the acknowledgement", || !folder.join("outcome.json").exists()).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn progress_is_reported_while_a_rank_runs() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let script = "echo '{\"step\": 3, \"loss\": 0.5}' >> $COHABIT_PROGRESS; while :; do sleep 0.02; done";
    head.order(run(1, shell(script))).await;
    let of = loop {
        if let Report::Progress(mut batch) = head.report().await {
            break batch.remove(0);
        }
    };
    assert_eq!((of.attempt, of.progress.step), (rank(1).attempt, 3));
    assert_eq!(of.progress.metrics, [("loss".to_owned(), 0.5.into())].into());
    daemon.stop().await.unwrap();
}

/// Where cgroups are delegated, the tests of `integration/kernel` see limits change.
#[tokio::test]
async fn a_rank_goes_on_where_its_share_cannot_change() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    if head.inventory.changes_host_shares {
        eprintln!("skipped: this worker can change shares");
        return;
    }
    let go = cluster.path().join("go");
    head.order(run(1, shell(&format!("{}; exit 7", until(&go))))).await;
    head.started(rank(1)).await;
    let host = HostShare { cpus: 1, ..HostShare::default() };
    head.order(Order::Allot { attempt: rank(1).attempt, host }).await;
    std::fs::write(&go, "").unwrap();
    loop {
        let report = head.report().await;
        assert!(!matches!(report, Report::Allotted { .. }), "nothing has changed: {report:?}");
        if let Report::Ended { outcome, .. } = report {
            assert_eq!(outcome, Outcome::Exited(7));
            break;
        }
    }
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_stop_runs_its_sequence_to_the_end() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let mut polite = shell("trap 'exit 5' TERM; while :; do sleep 0.02; done");
    polite.stop.grace = Span::from_secs(50);
    let mut stubborn = shell("trap '' TERM; while :; do sleep 0.02; done");
    stubborn.stop.grace = Span::from_millis(200);
    head.order(run(1, polite)).await;
    head.started(rank(1)).await;
    head.order(run(2, stubborn)).await;
    head.started(rank(2)).await;
    // Each trap is set before the loop begins.
    for job in [1, 2] {
        wait_for_trap(&cluster, job).await;
    }
    for job in [1, 2] {
        head.order(Order::Stop { attempt: rank(job).attempt, why: StopReason::Cancelled }).await;
    }
    let ends = head.all_ended([rank(1), rank(2)]).await;
    assert_eq!(ends[0].outcome, Outcome::Exited(5));
    assert_eq!(ends[1].outcome, Outcome::Signalled(Signal::KILL));
    assert!(ends.iter().all(|end| end.stopped == Some(StopReason::Cancelled)));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_time_limit_stops_a_rank() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let mut spec = shell("while :; do sleep 0.02; done");
    spec.time_limit = Some(Span::from_millis(300));
    head.order(run(1, spec)).await;
    let end = head.ended(rank(1)).await;
    assert_eq!((end.outcome, end.stopped), (Outcome::Signalled(Signal::TERM), Some(StopReason::TimeLimit)));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_rank_whose_executor_was_killed_is_lost_and_its_processes_are_killed() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let pids = cluster.path().join("pids");
    let script = format!("setsid sleep 1000 & echo $! $$ > {}; wait", pids.display());
    head.order(run(1, shell(&script))).await;
    head.started(rank(1)).await;
    let mut numbers = Vec::new();
    wait_for("the processes", || {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        numbers = text.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()).collect();
        text.ends_with('\n')
    })
    .await;
    kill_executor(&cluster, 1);
    assert!(matches!(head.ended(rank(1)).await.outcome, Outcome::Lost(_)));
    assert!(numbers.iter().all(|pid| !is_alive(*pid)));
    daemon.stop().await.unwrap();
}

/// The loop of the script has begun when the shell has a child.
async fn wait_for_trap(cluster: &Cluster, job: u64) {
    let executor = executor(cluster, job);
    let child_of = |pid: i32| {
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
            .ok()?
            .split_whitespace()
            .next()?
            .parse::<i32>()
            .ok()
    };
    wait_for("the shell's loop", || child_of(executor).and_then(child_of).is_some()).await;
}

fn executor(cluster: &Cluster, job: u64) -> i32 {
    let identity = std::fs::read(cluster.folder_of(rank(job)).join("executor.json")).unwrap();
    let identity: serde_json::Value = serde_json::from_slice(&identity).unwrap();
    i32::try_from(identity["pid"].as_i64().unwrap()).unwrap()
}

pub(crate) fn kill_executor(cluster: &Cluster, job: u64) {
    let pid = nix::unistd::Pid::from_raw(executor(cluster, job));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

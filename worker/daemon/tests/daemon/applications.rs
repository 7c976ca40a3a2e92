//! Parts of an application: their program, and what they find on their standard input.

use std::os::unix::fs::PermissionsExt;

use cohabit_types::{
    ApplicationAccess, ApplicationCredentials, ApplicationPlace, ApplicationSecret, ApplicationWork,
    CodeSnapshot, Entrypoint, JobSpec, Order, Outcome, Rendezvous, RunOrder, RunnerRole, RunnerWork,
    StartFailure,
};

use crate::kit::{Cluster, rank, run, shell, wait_for};

/// The order to run a part of an application.
fn part(job: u64, code: &CodeSnapshot, workdir: &str, entrypoint: Entrypoint) -> Order {
    let spec =
        JobSpec { code: Some(code.clone()), workdir: workdir.to_owned(), entrypoint, ..shell("false") };
    let Order::Run(order) = run(job, spec) else { unreachable!("it runs a job") };
    let token = (job == 1).then(|| "cohabit1.aa.bb".to_owned());
    let credentials = ApplicationCredentials { secret: ApplicationSecret([7; 32]), token };
    let listens = job == 1;
    let rendezvous = Rendezvous { address: "10.0.0.1".into(), port: 29_600 };
    let place = ApplicationPlace {
        node: "n1".into(),
        port: listens.then(|| rendezvous.clone()),
        coordinator: Some(rendezvous),
        coordinator_node: "n0".into(),
        gpus: 7,
    };
    let (application, place) = (Some(credentials), Some(place));
    Order::Run(Box::new(RunOrder { application, place, ..*order }))
}

/// The root of an application is job 1.
fn root(code: &CodeSnapshot, workdir: &str, arguments: Vec<String>) -> Order {
    let work = ApplicationWork { program: "program.sh".into(), arguments, max_gpus: None };
    part(1, code, workdir, Entrypoint::Application(work))
}

fn child(job: u64, code: &CodeSnapshot, workdir: &str, arguments: Vec<String>) -> Order {
    let (application, role) = (rank(1).attempt, RunnerRole::Actor);
    let work =
        RunnerWork { application, program: "program.sh".into(), role, arguments, node: None, ranks: 1 };
    part(job, code, workdir, Entrypoint::Runner(work))
}

/// Prints its role, its arguments, its directory and its standard input, and waits for the file that its
/// argument names.
const PROGRAM: &[u8] = b"#!/bin/sh\necho $COHABIT_APPLICATION_ROLE $#; pwd; cat; echo\nuntil [ -e \"$1\" ]; do sleep 0.02; done\n";

#[tokio::test]
async fn the_parts_of_an_application_share_a_program_and_find_each_other() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = cluster.snapshot(&[("program.sh", PROGRAM)]);
    let go = cluster.path().join("go").display().to_string();
    let workdir = cluster.path().display().to_string();
    head.order(root(&code, &workdir, vec![go.clone(), "2".into()])).await;
    head.started(rank(1)).await;
    let fetched = cluster.pieces_read();
    head.order(child(2, &code, &workdir, vec![go.clone()])).await;
    head.started(rank(2)).await;
    assert_eq!(cluster.pieces_read(), fetched, "the program is there already");
    let sockets = cluster.state().join("code/1/1/sockets");
    assert_eq!(std::fs::metadata(&sockets).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!cluster.state().join("code/2").exists(), "the child has no copy of its own");
    std::fs::write(&go, "").unwrap();
    let ends = head.all_ended([rank(1), rank(2)]).await;
    assert!(ends.iter().all(|end| end.outcome == Outcome::Exited(0)));
    for (job, role) in [(1, "coordinator 2"), (2, "actor 1")] {
        let output = head.followed(rank(job)).await;
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines[..2], [role, &workdir]);
        let access: ApplicationAccess = serde_json::from_str(lines[2]).unwrap();
        assert_eq!((access.application, access.member), (rank(1).attempt, rank(job)));
        assert_eq!(access.credentials.secret, ApplicationSecret([7; 32]));
        assert_eq!(access.credentials.token.is_some(), job == 1);
        assert_eq!((&access.directory, &access.code), (&sockets, &code));
        assert_eq!((access.node.as_str(), access.coordinator_node.as_str(), access.gpus), ("n1", "n0", 7));
        assert_eq!((access.port.is_some(), access.coordinator.is_some()), (job == 1, true));
        assert!(access.head.starts_with("127.0.0.1:"), "{}", access.head);
    }
    wait_for("the copy to be removed", || !cluster.state().join("code/1").exists()).await;
    daemon.stop().await.unwrap();
}

/// The root of the application runs on another node.
#[tokio::test]
async fn children_share_a_program_where_the_root_does_not_run_and_a_later_one_makes_it_again() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = cluster.snapshot(&[("program.sh", PROGRAM)]);
    let go = |name: &str| cluster.path().join(name).display().to_string();
    let (first, second) = (go("first"), go("second"));
    head.order(child(2, &code, "/", vec![first.clone()])).await;
    head.started(rank(2)).await;
    let fetched = cluster.pieces_read();
    head.order(child(3, &code, "/", vec![second.clone()])).await;
    head.started(rank(3)).await;
    assert_eq!(cluster.pieces_read(), fetched, "the program is there already");
    std::fs::write(&first, "").unwrap();
    assert_eq!(head.ended(rank(2)).await.outcome, Outcome::Exited(0));
    let program = cluster.state().join("code/1/1/files/program.sh");
    assert!(program.exists(), "one part of the application runs");
    std::fs::write(&second, "").unwrap();
    assert_eq!(head.ended(rank(3)).await.outcome, Outcome::Exited(0));
    // At once: the copy of the others may still be being removed.
    head.order(child(4, &code, "/", vec![go("third")])).await;
    head.started(rank(4)).await;
    assert!(program.exists() && cluster.state().join("code/1/1/sockets").exists());
    std::fs::write(go("third"), "").unwrap();
    assert_eq!(head.ended(rank(4)).await.outcome, Outcome::Exited(0));
    wait_for("the copy to be removed", || !cluster.state().join("code/1").exists()).await;
    daemon.stop().await.unwrap();
}

/// What the head gives to an application is in no file that outlives the order, and in no process's arguments
/// or environment.
#[tokio::test]
async fn the_secrets_of_an_application_are_in_no_file() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = cluster.snapshot(&[("program.sh", b"#!/bin/sh\nuntil [ -e \"$1\" ]; do sleep 0.02; done\n")]);
    let go = cluster.path().join("go").display().to_string();
    head.order(root(&code, "/", vec![go.clone()])).await;
    head.started(rank(1)).await;
    let mut left = vec![cluster.state()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        // Sockets and pipes keep nothing, and reading a pipe waits for a writer.
        if !path.is_file() {
            continue;
        }
        let Ok(content) = std::fs::read(&path) else { continue };
        let has = |hidden: &str| content.windows(hidden.len()).any(|it| it == hidden.as_bytes());
        assert!(!has("cohabit1.aa.bb") && !has(&"07".repeat(32)), "{}", path.display());
    }
    std::fs::write(&go, "").unwrap();
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_not_in_the_snapshot_is_named() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = cluster.snapshot(&[("other.sh", PROGRAM)]);
    head.order(root(&code, "/", vec![])).await;
    let Outcome::NotStarted(StartFailure::CommandNotFound(name)) = head.ended(rank(1)).await.outcome else {
        panic!()
    };
    assert!(name.ends_with("/program.sh"), "{name}");
    daemon.stop().await.unwrap();
}

/// An executor and its rank outlive the daemon; the next one keeps the program while a part runs.
#[tokio::test]
async fn the_program_stays_while_a_part_runs() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = cluster.snapshot(&[("program.sh", PROGRAM)]);
    let [first, second] = ["first", "second"].map(|name| cluster.path().join(name).display().to_string());
    head.order(root(&code, "/", vec![first.clone()])).await;
    head.started(rank(1)).await;
    head.order(child(2, &code, "/", vec![second.clone()])).await;
    head.started(rank(2)).await;
    daemon.stop().await.unwrap();
    let (daemon, mut head) = cluster.worker().await;
    std::fs::write(&first, "").unwrap();
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    assert!(cluster.state().join("code/1/1/files/program.sh").exists());
    std::fs::write(&second, "").unwrap();
    assert_eq!(head.ended(rank(2)).await.outcome, Outcome::Exited(0));
    wait_for("the copy to be removed", || !cluster.state().join("code/1").exists()).await;
    daemon.stop().await.unwrap();
}

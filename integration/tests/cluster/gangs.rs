//! Gangs: jobs with ranks on several nodes, which start together, rendezvous, and end together.
//!
//! Both workers run on this machine, so all addresses are loopback addresses. Everything else is as between
//! machines.

use std::collections::{BTreeMap, BTreeSet};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::*;

/// The value that this rank of the last attempt printed as `NAME=value`.
fn variables(cluster: &Cluster, job: &str, rank: &str) -> BTreeMap<String, String> {
    let printed = cluster.ok(&["logs", "--rank", rank, job]);
    printed
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[track_caller]
fn says(variables: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(variables.get(*name).map(String::as_str), Some(*value), "{name} in {variables:?}");
    }
}

/// A script that waits for this file.
fn until_there(path: &str) -> String {
    format!("until test -e {path}; do sleep 0.05; done")
}

#[test]
fn a_gang_starts_on_all_its_nodes_or_on_none() {
    let cluster = Cluster::start(&["host:1", "host:1"]);
    let go = cluster.path("go");
    let blocker = cluster.submit(&[], &until_there(&go));
    cluster.until_state(&blocker, "RUNNING");
    let gang = cluster.submit(&["--nodes", "2"], "echo $NODE_RANK of $NNODES");
    let shown = cluster.show(&gang);
    assert_eq!((shown["state"].as_str(), shown["attempt"].as_u64()), (Some("PENDING"), Some(0)), "{shown}");
    std::fs::write(&go, "").unwrap();
    let shown = cluster.end(&gang);
    assert_eq!(shown["state"], "COMPLETED", "{shown}");
    assert_eq!(shown["nodes"].as_array().unwrap().len(), 2, "{shown}");
    let said = ["0", "1"].map(|rank| cluster.ok(&["logs", "--rank", rank, &gang]));
    assert_eq!(said, ["0 of 2\n", "1 of 2\n"]);
}

#[test]
fn each_rank_of_a_device_gets_the_set_of_torchrun() {
    let cluster = Cluster::start(&["host:2", "host:2"]);
    let flags = ["--nodes", "2", "--gpus", "4", "--launch", "per-gpu", "--retries", "3", "--cpus", "2"];
    let job = cluster.submit(&flags, "env");
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    let ranks = ["0", "1", "2", "3"].map(|rank| variables(&cluster, &job, rank));
    for (rank, found) in ranks.iter().enumerate() {
        let (rank_text, local, group) = (rank.to_string(), (rank % 2).to_string(), (rank / 2).to_string());
        says(found, &[("RANK", &rank_text), ("LOCAL_RANK", &local), ("GROUP_RANK", &group)]);
        says(found, &[("ROLE_RANK", &rank_text), ("ROLE_NAME", "default"), ("ROLE_WORLD_SIZE", "4")]);
        says(found, &[("WORLD_SIZE", "4"), ("LOCAL_WORLD_SIZE", "2"), ("GROUP_WORLD_SIZE", "2")]);
        says(found, &[("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &ranks[0]["MASTER_PORT"])]);
        says(found, &[("TORCHELASTIC_RESTART_COUNT", "0"), ("TORCHELASTIC_MAX_RESTARTS", "3")]);
        says(found, &[("TORCHELASTIC_RUN_ID", &job), ("OMP_NUM_THREADS", "1")]);
    }
}

#[test]
fn a_launcher_is_started_once_on_each_node_with_its_devices() {
    let cluster = Cluster::start(&["host:2", "host:2"]);
    let job = cluster.submit(&["--nodes", "2", "--gpus", "4"], "env");
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    let nodes = ["0", "1"].map(|rank| variables(&cluster, &job, rank));
    for (number, found) in nodes.iter().enumerate() {
        says(found, &[("NODE_RANK", &number.to_string()), ("NNODES", "2"), ("NPROC_PER_NODE", "2")]);
        says(found, &[("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &nodes[0]["MASTER_PORT"])]);
        assert!(!found.contains_key("RANK"), "the launcher numbers its own ranks");
    }
}

#[test]
fn devices_spread_unevenly_are_counted_node_by_node() {
    let cluster = Cluster::start(&["host:1", "host:2"]);
    let ranks = cluster.submit(&["--nodes", "any", "--gpus", "3", "--launch", "per-gpu"], "env");
    assert_eq!(cluster.end(&ranks)["state"], "COMPLETED");
    let mut places = BTreeSet::new();
    for rank in ["0", "1", "2"] {
        let found = variables(&cluster, &ranks, rank);
        says(&found, &[("RANK", rank), ("WORLD_SIZE", "3"), ("GROUP_WORLD_SIZE", "2")]);
        places.insert(["GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"].map(|name| found[name].clone()));
    }
    let sizes: Vec<&str> = places.iter().map(|place| place[2].as_str()).collect();
    assert_eq!(places.len(), 3, "no two ranks have the same place: {places:?}");
    assert_eq!(sizes.iter().filter(|size| **size == "2").count(), 2, "{places:?}");
}

#[test]
fn gangs_side_by_side_on_the_same_nodes_meet_at_different_ports() {
    let cluster = Cluster::start(&["host:2", "host:2"]);
    let go = cluster.path("go");
    let script = format!("env; {}", until_there(&go));
    let gangs: Vec<String> = (0..2).map(|_| cluster.submit(&["--nodes", "2"], &script)).collect();
    gangs.iter().for_each(|gang| cluster.until_state(gang, "RUNNING"));
    std::fs::write(&go, "").unwrap();
    let mut ports = BTreeSet::new();
    for gang in &gangs {
        assert_eq!(cluster.end(gang)["state"], "COMPLETED");
        let found = ["0", "1"].map(|rank| variables(&cluster, gang, rank)["MASTER_PORT"].clone());
        assert_eq!(found[0], found[1], "all ranks of a gang agree");
        ports.insert(found[0].clone());
    }
    assert_eq!(ports.len(), 2, "{ports:?}");
}

#[test]
fn a_rank_that_fails_ends_all_and_all_start_again_from_the_same_checkpoints() {
    let cluster = Cluster::start(&["host:1", "host:1"]);
    // The rank that fails waits until the other one has begun.
    let begun = cluster.path("begun");
    let script = format!(
        r#"echo "$COHABIT_ATTEMPT $COHABIT_CHECKPOINT_DIR" >> "$COHABIT_CHECKPOINT_DIR/attempts"
        if test "$COHABIT_ATTEMPT" = 2; then cat "$COHABIT_CHECKPOINT_DIR/attempts"; exit 0; fi
        if test "$NODE_RANK" = 1; then {}; exit 3; fi
        touch {begun}
        sleep 1000"#,
        until_there(&begun)
    );
    let job = cluster.submit(&["--nodes", "2", "--retries", "1"], &script);
    cluster.completed_in(2, &job);
    for rank in ["0", "1"] {
        let printed = cluster.ok(&["logs", "--rank", rank, &job]);
        let lines: Vec<(&str, &str)> = printed.lines().filter_map(|line| line.split_once(' ')).collect();
        let [(first, before), (second, after)] = lines[..] else { panic!("{printed}") };
        assert_eq!((first, second, before), ("1", "2", after), "on rank {rank}");
    }
}

#[test]
fn a_machine_that_loses_its_worker_and_its_ranks_restarts_the_gang() {
    let mut cluster = Cluster::start(&["host:1", "host:1"]);
    let mark = format!("cohabit-gang-{}", std::process::id());
    let script = r#"touch "$COHABIT_CHECKPOINT_DIR/$NODE_RANK.$COHABIT_ATTEMPT"
        test "$COHABIT_ATTEMPT" = 1 && sleep 1000
        exit 0"#;
    let job = cluster.submit(&["--nodes", "2", "--env", &format!("MARK={mark}")], script);
    cluster.until_state(&job, "RUNNING");
    cluster.until_file(&format!("worker1/checkpoints/{job}-node1/1.1"));
    cluster.machine_dies(1);
    cluster.restart_worker(1);
    let shown = cluster.completed_in(2, &job);
    let outcomes = shown["attempts"][0]["ranks"].to_string();
    assert!(outcomes.contains("its executor was killed"), "{outcomes}");
    until("nothing of the first attempt is left", || processes_with(&mark).is_empty());
}

#[test]
fn a_gang_survives_a_killed_worker_daemon() {
    let mut cluster = Cluster::start(&["host:1", "host:1"]);
    let go = cluster.path("go");
    let job = cluster.submit(&["--nodes", "2"], &until_there(&go));
    cluster.until_state(&job, "RUNNING");
    for rank in ["worker0/ranks/1/1/0/executor.json", "worker1/ranks/1/1/1/executor.json"] {
        cluster.until_file(rank);
    }
    cluster.kill_worker(0);
    cluster.restart_worker(0);
    std::fs::write(&go, "").unwrap();
    cluster.completed_in(1, &job);
}

#[test]
fn ranks_train_over_two_workers_and_continue_after_one_was_killed() {
    let cluster = Cluster::start(&["host:1", "host:1"]);
    let program = binary().display().to_string();
    let command =
        format!("exec {program} train digits --data-parallel --epochs 60 --hidden 32 --checkpoint-seconds 1");
    let flags = ["--gpus", "2", "--nodes", "2", "--launch", "per-gpu", "--retries", "2"];
    let job = cluster.submit(&flags, &command);
    until("a checkpoint is there", || cluster.folder().join(checkpoint(0, &job)).exists());
    let ranks = processes_with(&cluster.path(&format!("worker1/ranks/{job}/1")));
    let trains = |pid: &&i32| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .unwrap_or_default()
            .contains("--data-parallel")
    };
    let victim = ranks.iter().find(trains).expect("the second rank trains");
    kill(Pid::from_raw(*victim), Signal::SIGKILL).unwrap();
    cluster.completed_in(2, &job);
    let printed = cluster.ok(&["logs", "--rank", "0", &job]);
    assert!(printed.contains("resumed at step "), "{printed}");
    assert_eq!(cluster.ok(&["logs", "--rank", "1", &job]), "", "the first rank speaks for all");
    assert!(!cluster.folder().join(checkpoint(1, &job)).exists(), "only the first rank saves");
    let (_, accuracy) = printed.rsplit_once("accuracy ").expect("it says how well it reads");
    let accuracy: f64 = accuracy[..accuracy.find('%').unwrap()].parse().unwrap();
    assert!(accuracy > 90.0, "{printed}");
}

fn checkpoint(worker: usize, job: &str) -> String {
    let node = if worker == 0 { String::new() } else { format!("-node{worker}") };
    format!("worker{worker}/checkpoints/{job}{node}/digits.safetensors")
}

#[test]
fn the_operator_sets_the_speed_of_links() {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_with("host:1", &["--network", "25g", "--interconnect", "300GB"]);
    cluster.add_worker("host:1");
    let nodes = cluster.json(&["nodes"]);
    let links = |node: usize| nodes["nodes"][node]["links"].clone();
    assert_eq!(
        (links(0)["network"].as_f64(), links(0)["interconnect"].as_f64()),
        (Some(3.125e9), Some(3e11))
    );
    assert!(links(1)["network"].is_null() && links(1)["interconnect"].is_null(), "loopback knows no speed");
    let output = cluster
        .command(&[
            "worker",
            "start",
            "--join",
            "127.0.0.1:1",
            "--token-file",
            "head/worker.token",
            "--network",
            "fast",
        ])
        .output();
    let stderr = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    assert!(stderr.contains("--network") && stderr.contains("25g"), "{stderr}");
}

//! Many short jobs while daemons are killed: each job runs once.

use crate::kit::*;

/// Members of the array.
const MEMBERS: usize = 160;
/// How many times daemons are killed meanwhile.
const DEATHS: usize = 8;

/// Kills this daemon repeatedly, each time after this many more members recorded that they ran. Ranks and
/// executors are not killed, so every started member runs, and none may run twice.
fn members_run_once_while(devices: &[&str], kill_and_restart: impl Fn(&mut Cluster, usize)) {
    let mut cluster = Cluster::start(devices);
    let written = cluster.path("ran");
    std::fs::write(&written, "").unwrap();
    let array = format!("0-{}", MEMBERS - 1);
    let job = cluster.submit(&["--array", &array], &format!("echo $COHABIT_ARRAY_INDEX >> {written}"));
    let ran = |cluster: &Cluster| -> Vec<usize> {
        cluster.read("ran").lines().map(|index| index.parse().unwrap()).collect()
    };
    for death in 0..DEATHS {
        let enough = (death + 1) * MEMBERS / (DEATHS + 2);
        until(&format!("{enough} members ran"), || ran(&cluster).len() >= enough);
        kill_and_restart(&mut cluster, death);
    }
    let ended = cluster.end(&job);
    assert_eq!(ended["state"], "COMPLETED", "{ended}");
    let mut ran = ran(&cluster);
    ran.sort_unstable();
    assert_eq!(ran, (0..MEMBERS).collect::<Vec<_>>(), "each member ran, and once");
}

#[test]
fn array_members_run_once_when_their_worker_is_killed_repeatedly() {
    members_run_once_while(&["host:4"], |cluster, _| {
        cluster.kill_worker(0);
        cluster.restart_worker(0);
    });
}

#[test]
fn array_members_run_once_when_their_head_is_killed_repeatedly() {
    members_run_once_while(&["host:4"], |cluster, _| {
        cluster.kill_head();
        cluster.restart_head();
    });
}

#[test]
fn array_members_run_once_when_all_daemons_are_killed_repeatedly() {
    members_run_once_while(&["host:2", "host:2"], |cluster, death| match death % 3 {
        0 => {
            cluster.kill_daemons();
            cluster.restart_daemons();
        }
        1 => {
            cluster.kill_worker(death % 2);
            cluster.kill_head();
            cluster.restart_head();
            cluster.restart_worker(death % 2);
        }
        _ => {
            cluster.kill_worker(1);
            cluster.restart_worker(1);
        }
    });
}

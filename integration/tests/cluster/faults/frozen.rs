//! Executors that do not act: the worker daemon, or their watchdog, ends their ranks in their place.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::*;

fn freeze(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
}

/// The executor that waits for the next rank of this worker, and its watchdog.
fn idle_executor(cluster: &Cluster) -> [i32; 2] {
    let state = cluster.path("worker0");
    let command = format!("\0executor\0{state}\0");
    let is_executor =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|it| it.ends_with(&command));
    let find = || processes_with(&state).into_iter().filter(is_executor).collect::<Vec<_>>();
    until("an executor waits", || find().len() == 2);
    let [one, other] = find()[..] else { panic!("there are others") };
    let parent = |pid| state_and_parent(pid).map(|(_, parent)| parent);
    if parent(one) == Some(other) { [one, other] } else { [other, one] }
}

/// The state of a process and the id of its parent; `None` if nothing is left of it.
fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn children_of(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap();
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| state_and_parent(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

/// A process by its id and its start, because another may get the same id meanwhile.
struct Watched(i32, String);

impl Watched {
    fn new(pid: i32) -> Watched {
        Watched(pid, started_at(pid).expect("it runs"))
    }

    fn is_gone(&self) -> bool {
        started_at(self.0).as_ref() != Some(&self.1)
            || state_and_parent(self.0).is_none_or(|(state, _)| state == 'Z')
    }
}

/// When a process started, in clock ticks since boot.
fn started_at(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19).map(str::to_owned)
}

#[test]
fn a_rank_whose_executor_never_starts_it_ends_soon_after_its_time_limit() {
    let cluster = Cluster::start(&["host:1"]);
    let [executor, watchdog] = idle_executor(&cluster);
    let watched = [executor, watchdog].map(Watched::new);
    freeze(executor);
    let job = cluster.submit(&["--time", "1s"], "true");
    let ended = cluster.end(&job);
    assert_eq!(ended["state"], "TIMEOUT", "{ended}");
    assert!(ended.to_string().contains("it was not started in time"), "{ended}");
    assert!(watched.iter().all(Watched::is_gone));
    let next = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&next)["state"], "COMPLETED", "its slot is free");
}

#[test]
fn a_rank_whose_executor_hangs_is_killed_with_all_its_processes() {
    let cluster = Cluster::start(&["host:1"]);
    let log = cluster.attempt_log("log");
    let job = cluster.submit(&[], &format!("(env -i setsid sleep 1000 &)\n{}", log.script()));
    log.until_started(1, 1);
    let executor = cluster.executor_of(0, &format!("{job}/1/0"));
    until("the detached process is the executor's", || children_of(executor).len() == 2);
    let (_, watchdog) = state_and_parent(executor).unwrap();
    let processes = [children_of(executor), vec![executor, watchdog]].concat();
    let processes: Vec<Watched> = processes.into_iter().map(Watched::new).collect();
    freeze(executor);
    cluster.ok(&["cancel", "--force", &job]);
    let ended = cluster.end(&job);
    assert_eq!((ended["state"].as_str(), ended["attempt"].as_u64()), (Some("CANCELLED"), Some(1)), "{ended}");
    assert!(processes.iter().all(Watched::is_gone), "nothing is left when the end is told");
}

/// A job on each of two nodes: one loses its daemon and the executor, as by `pkill -9`, the other its daemon
/// while the executor is suspended. The jobs record their attempts, and look for those before.
#[test]
fn a_job_that_neither_daemon_nor_executor_can_end_has_ended_before_it_runs_elsewhere() {
    let mut cluster = Cluster::with_head(&["--policy", "fifo", "--lost-after", "1s"], &[]);
    for _ in 0..2 {
        cluster.add_worker_with("host:1", &["--orphan-grace", "1s"]);
    }
    let logs = [cluster.attempt_log("killed"), cluster.attempt_log("suspended")];
    let jobs = logs.each_ref().map(|log| cluster.submit(&["--grace", "1s"], &log.script()));
    logs.iter().for_each(|log| _ = log.until_started(1, 1));
    let executors = jobs.each_ref().map(|job| cluster.executor_of_any(&format!("{job}/1/0")));
    cluster.kill_worker(0);
    cluster.kill_worker(1);
    kill_hard(executors[0]);
    freeze(executors[1]);
    cluster.add_worker("host:2");
    for (log, job) in logs.iter().zip(&jobs) {
        until_within(3 * TIMEOUT, "the job runs elsewhere", || log.started(2).len() == 1);
        log.go();
        cluster.completed_in(2, job);
        log.assert_whole(2, 1);
    }
}

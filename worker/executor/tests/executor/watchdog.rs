//! What happens to a rank whose executor cannot act any more.

use std::fs;

use cohabit_types::Span;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::kit::{Plan, Rank, is_alive, wait_for};

/// A rank with a process that nothing but its descent ties to it. Its time without contact to the head ends
/// soon, and the patience of its watchdog 15 s later.
fn rank_with_stray() -> (Rank, Vec<i32>) {
    let stray = "(env -i setsid sh -c 'echo $$ > '$DIR'/stray; exec sleep 1000' <&- >&- 2>&- &)";
    let script = format!("{stray}; echo $$ > $DIR/first; while :; do sleep 0.02; done");
    let plan = Plan::shell(&script).grace(Span::from_millis(100)).change(|plan| {
        (plan.orphan_grace, plan.lease_term) = (Span::from_millis(100), Some(Span::from_secs(2)));
    });
    let rank = plan.start();
    let pids = vec![rank.pid_of("first"), rank.pid_of("stray")];
    (rank, pids)
}

fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_processes_of_a_killed_executor_are_those_of_its_watchdog_which_kills_them_in_time() {
    let (mut rank, pids) = rank_with_stray();
    let (executor, watchdog) = (rank.executor(), rank.watchdog());
    rank.disconnect();
    kill(Pid::from_raw(executor), Signal::SIGKILL).unwrap();
    wait_for("new parents", || pids.iter().all(|pid| parent_of(*pid) == watchdog).then_some(()));
    assert!(is_alive(watchdog));
    wait_for("their end", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
    rank.exits(false);
}

#[test]
fn a_suspended_executor_does_not_keep_its_rank_beyond_its_time() {
    let (mut rank, pids) = rank_with_stray();
    kill(Pid::from_raw(rank.executor()), Signal::SIGSTOP).unwrap();
    rank.disconnect();
    wait_for("their end", || pids.iter().all(|pid| !is_alive(*pid)).then_some(()));
    rank.exits(false);
    assert!(!rank.path("outcome.json").exists());
}

#[test]
fn the_watchdog_has_a_name_of_its_own_and_survives_signals_to_it() {
    let mut rank = Plan::shell("until [ -e $DIR/go ]; do sleep 0.02; done; exit 3").start();
    let watchdog = rank.watchdog();
    let name = || fs::read_to_string(format!("/proc/{watchdog}/comm")).unwrap();
    wait_for("its name", || (name() == "rank-watchdog\n").then_some(()));
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        kill(Pid::from_raw(watchdog), signal).unwrap();
    }
    fs::write(rank.path("go"), "").unwrap();
    assert_eq!(rank.ended()["ending"]["outcome"], json!({ "exited": 3 }));
    rank.exits(true);
}

//! No process of a rank is left when it has ended.

use serde_json::json;

use crate::kit::{Plan, is_alive, wait_for};

#[test]
fn background_children_are_gone_at_the_end() {
    let mut rank = Plan::shell("sleep 1000 & echo $! > $DIR/child; exit 2").start();
    assert_eq!(rank.outcome(), json!({ "exited": 2 }));
    assert!(!is_alive(rank.pid_of("child")));
}

#[test]
fn grandchildren_with_a_session_of_their_own_are_gone_at_the_end() {
    let daemon =
        "setsid sh -c 'setsid sleep 1000 & echo $! > $DIR/inner; echo $$ > $DIR/outer; exec sleep 1000' &";
    let script = format!("{daemon} until [ -s $DIR/outer ]; do sleep 0.02; done; exit 0");
    let mut rank = Plan::shell(&script).start();
    assert_eq!(rank.outcome(), json!({ "exited": 0 }));
    assert!(!is_alive(rank.pid_of("inner")));
    assert!(!is_alive(rank.pid_of("outer")));
}

#[test]
fn grandchildren_that_ignore_sigterm_are_killed() {
    let stubborn = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > $DIR/child; while :; do sleep 0.02; done' &";
    let script = format!("{stubborn} until [ -s $DIR/child ]; do sleep 0.02; done");
    let mut rank = Plan::shell(&script).start();
    assert_eq!(rank.outcome(), json!({ "exited": 0 }));
    assert!(!is_alive(rank.pid_of("child")));
}

#[test]
fn processes_are_killed_while_they_multiply() {
    let script = "trap '' TERM; echo > $DIR/ready
                  while :; do setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000' & sleep 0.01; done";
    let mut rank = Plan::shell(script).start();
    rank.line_of("ready");
    let executor = rank.executor();
    wait_for("many processes", || (members(executor).len() > 20).then_some(()));
    rank.signal(9, "everything");
    assert_eq!(rank.outcome(), json!({ "signalled": 9 }));
    assert_eq!(rank_processes(&rank), Vec::<i32>::new());
}

/// All processes with the environment of this executor's rank.
fn rank_processes(rank: &crate::kit::Rank) -> Vec<i32> {
    let mark = format!("DIR={}", rank.path("").to_str().unwrap().trim_end_matches('/'));
    let carries = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    processes().filter(|pid| is_alive(*pid)).filter(carries).collect()
}

/// The children and grandchildren of this process.
fn members(ancestor: i32) -> Vec<i32> {
    let children = |of: i32| processes().filter(move |pid| parent(*pid) == Some(of));
    children(ancestor).flat_map(|child| std::iter::once(child).chain(children(child))).collect()
}

fn processes() -> impl Iterator<Item = i32> {
    std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

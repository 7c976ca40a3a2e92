//! How ranks end and are stopped.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cohabit_types::Span;
use serde_json::json;

use crate::kit::{Plan, identity, wait_for};

/// The loop of a script that is to be stopped.
const FOR_EVER: &str = "while :; do sleep 0.02; done";

#[test]
fn exit_codes_are_reported() {
    for code in [0, 1, 7, 255] {
        assert_eq!(Plan::shell(&format!("exit {code}")).outcome(), json!({ "exited": code }));
    }
}

#[test]
fn the_signal_that_ended_a_rank_is_reported() {
    assert_eq!(Plan::shell("kill -9 $$").outcome(), json!({ "signalled": 9 }));
    assert_eq!(Plan::shell("kill -11 $$").outcome(), json!({ "signalled": 11 }));
}

#[test]
fn the_outcome_is_a_private_and_complete_file() {
    let script = "stat -c %a $COHABIT_PROGRESS > $DIR/mode; echo '{\"step\": 9}' | tee $COHABIT_PROGRESS";
    let mut rank = Plan::shell(script).start();
    let ended = rank.ended();
    assert_eq!(ended["progress"]["step"], 9);
    assert_eq!(ended["ending"]["stopped"], json!(null));
    assert!(ended["started_at"].as_u64().unwrap() <= ended["ending"]["at"].as_u64().unwrap());
    assert_eq!(fs::read_to_string(rank.path("mode")).unwrap(), "600\n");
    for name in ["outcome.json", "executor.json", "log/00000000000000000000"] {
        assert_eq!(fs::metadata(rank.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
}

/// Output is kept for a week, and what a job wrote to its progress file may be large.
#[test]
fn the_progress_file_goes_with_its_rank() {
    let mut rank = Plan::shell("truncate -s 4T $COHABIT_PROGRESS; true").start();
    rank.ended();
    wait_for("its removal", || (!rank.path("progress").exists()).then_some(()));
}

#[test]
fn the_executor_writes_its_identity_and_that_of_its_watchdog() {
    let rank = Plan::shell(&format!("echo $PPID > $DIR/executor; {FOR_EVER}")).start();
    let executor = rank.pid_of("executor");
    let identity = identity(&rank.path(""));
    assert_eq!((&identity["pid"], &identity["watchdog"]["pid"]), (&executor.into(), &rank.watchdog().into()));
    let started = |of: &serde_json::Value| of["started_at_ticks"].as_u64().unwrap();
    assert!(started(&identity) >= started(&identity["watchdog"]) && started(&identity["watchdog"]) > 0);
    assert_eq!(identity["boot"].as_str().unwrap().len(), 36);
}

#[test]
fn a_signal_reaches_the_whole_process_group() {
    let child = format!("trap \"echo child > $DIR/child; exit\" USR1; echo > $DIR/ready; {FOR_EVER}");
    let parent = format!("trap 'echo parent > $DIR/parent; wait; exit 4' USR1; sh -c '{child}' & {FOR_EVER}");
    let mut rank = Plan::shell(&parent).start();
    rank.line_of("ready");
    rank.signal(10, "group");
    assert_eq!(rank.outcome(), json!({ "exited": 4 }));
    assert_eq!((rank.line_of("child"), rank.line_of("parent")), ("child".into(), "parent".into()));
}

#[test]
fn a_rank_that_ignores_sigterm_is_killed_with_all_its_processes() {
    let mut rank =
        Plan::shell("trap '' TERM INT HUP; echo > $DIR/ready; while :; do sleep 0.02; done").start();
    rank.line_of("ready");
    rank.signal(15, "group");
    rank.signal(9, "everything");
    assert_eq!(rank.outcome(), json!({ "signalled": 9 }));
}

/// A shell dies at once from the signal on which its children save their work.
#[test]
fn children_keep_their_grace_when_their_shell_dies_first() {
    let child =
        format!("trap \"sleep 3; echo saved > $DIR/saved; exit\" TERM; echo > $DIR/ready; {FOR_EVER}");
    let shell = format!("sh -c '{child}'; true");
    let mut rank = Plan::shell(&shell).grace(Span::from_secs(50)).start();
    rank.line_of("ready");
    rank.signal(15, "group");
    assert_eq!(rank.outcome(), json!({ "signalled": 15 }));
    assert_eq!(fs::read_to_string(rank.path("saved")).unwrap(), "saved\n");
}

/// The daemon that ordered the stop is replaced before the rank ends.
#[test]
fn the_stop_reason_survives_the_daemon() {
    let trap = "trap 'echo > $DIR/asked' TERM; echo > $DIR/ready; while :; do sleep 0.02; done";
    let mut rank = Plan::shell(trap).start();
    rank.line_of("ready");
    let stopping = json!({ "why": "mps_fault", "next": "kill", "due_at": 4_000_000_000_000_000_u64 });
    rank.say(&json!({ "stopping": stopping }));
    rank.signal(15, "group");
    rank.line_of("asked");
    rank.disconnect();
    rank.connect();
    let words: Vec<_> = (0..2).map(|_| rank.hear(|word| Some(word.clone()))).collect();
    assert_eq!(words[0]["stopping"], stopping, "ahead of everything else");
    assert!(words[1]["started"].is_u64(), "{words:?}");
    rank.signal(9, "everything");
    assert_eq!(rank.ended()["ending"]["stopped"], "mps_fault");
}

#[test]
fn unknown_commands_are_ignored() {
    let mut rank = Plan::shell("trap 'exit 8' USR1; echo > $DIR/ready; while :; do sleep 0.02; done").start();
    rank.line_of("ready");
    rank.signal(99, "group");
    rank.say(&json!({ "dance": "tango" }));
    rank.say(&json!("\u{0}"));
    rank.signal(10, "group");
    assert_eq!(rank.outcome(), json!({ "exited": 8 }));
}

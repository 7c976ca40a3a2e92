//! What an executor does without a daemon or head.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use cohabit_types::{Span, WarningSignal};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::kit::{Plan, is_alive, wait_for};

/// Long enough for a test to act before it has passed.
const GRACE: Duration = Duration::from_secs(4);

const LOOP: &str = "echo $$ > $DIR/pid; while :; do sleep 0.02; done";

#[test]
fn a_rank_without_any_daemon_is_stopped() {
    let mut rank = Plan::shell(LOOP).change(|plan| plan.orphan_grace = Span::from_millis(300)).start();
    rank.disconnect();
    let ended = rank.ended();
    assert_eq!(ended["ending"]["outcome"], json!({ "signalled": 15 }));
    assert_eq!(ended["ending"]["stopped"], "orphaned");
}

#[test]
fn a_rank_whose_daemon_is_gone_is_stopped() {
    let mut rank = Plan::shell(LOOP).change(|plan| plan.orphan_grace = Span::from_millis(300)).start();
    let pid = rank.pid_of("pid");
    rank.disconnect();
    assert_eq!(rank.ended()["ending"]["stopped"], "orphaned");
    assert!(!is_alive(pid));
}

#[test]
fn a_rank_that_ended_while_its_executor_was_suspended_is_no_orphan() {
    let script = "trap 'echo heard > $DIR/heard' USR1; echo $$ > $DIR/pid; \
                  until [ -e $DIR/go ]; do sleep 0.02; done";
    let mut rank = Plan::shell(script).change(|plan| plan.orphan_grace = GRACE.into()).start();
    let pid = rank.pid_of("pid");
    rank.say(&json!({ "lease": "orphaned" }));
    rank.signal(Signal::SIGUSR1 as i32, "group");
    assert_eq!(rank.line_of("heard"), "heard", "the executor has read both");
    let executor = Pid::from_raw(rank.executor());
    kill(executor, Signal::SIGSTOP).unwrap();
    fs::write(rank.path("go"), "").unwrap();
    wait_for("the end of the rank", || (!is_alive(pid)).then_some(()));
    sleep(GRACE);
    kill(executor, Signal::SIGCONT).unwrap();
    let ended = rank.ended();
    assert_eq!(
        ended["ending"],
        json!({ "outcome": { "exited": 0 }, "stopped": null, "at": ended["ending"]["at"] })
    );
}

#[test]
fn a_rank_whose_head_is_unreachable_is_stopped_although_its_daemon_runs() {
    let mut rank = Plan::shell(LOOP).change(|plan| plan.orphan_grace = Span::from_millis(300)).start();
    rank.say(&json!({ "lease": "orphaned" }));
    assert_eq!(rank.ended()["ending"]["stopped"], "orphaned");
}

#[test]
fn an_orphan_that_ignores_sigterm_is_killed_after_its_grace() {
    let plan = Plan::shell(&format!("trap '' TERM; {LOOP}")).grace(Span::from_millis(300));
    let mut rank = plan.change(|plan| plan.orphan_grace = Span::from_millis(300)).start();
    rank.line_of("pid");
    rank.disconnect();
    let ended = rank.ended();
    assert_eq!(
        ended["ending"],
        json!({ "outcome": { "signalled": 9 }, "stopped": "orphaned", "at": ended["ending"]["at"] })
    );
}

/// The rank runs for several times its orphan grace and then ends by itself.
#[test]
fn the_orphan_timer_is_stopped_while_the_head_can_be_reached() {
    let mut rank =
        Plan::shell("sleep 3; exit 3").change(|plan| plan.orphan_grace = Span::from_secs(1)).start();
    let ended = rank.ended();
    assert_eq!(ended["ending"]["outcome"], json!({ "exited": 3 }));
    assert_eq!(ended["ending"]["stopped"], json!(null));
}

#[test]
fn an_orphan_that_was_being_stopped_keeps_that_reason() {
    let plan = Plan::shell(&format!("trap '' TERM; {LOOP}")).grace(Span::from_millis(300));
    let mut rank = plan.change(|plan| plan.orphan_grace = Span::from_millis(300)).start();
    rank.line_of("pid");
    rank.say(&json!({ "stopping": { "why": "mps_fault_victim", "next": "terminate", "due_at": 9 } }));
    rank.disconnect();
    let ended = rank.ended();
    assert_eq!(ended["ending"]["outcome"], json!({ "signalled": 9 }));
    assert_eq!(ended["ending"]["stopped"], "mps_fault_victim");
}

#[test]
fn a_time_limit_is_kept_without_a_daemon() {
    let script = format!("trap 'echo warned > $DIR/warned' USR1; {LOOP}");
    let mut rank = Plan::shell(&script)
        .change(|plan| {
            plan.spec.time_limit = Some(Span::from_secs(2));
            let before = Span::from_secs(1);
            plan.spec.stop.warning = Some(WarningSignal { signal: cohabit_types::Signal::USR1, before });
        })
        .start();
    rank.line_of("pid");
    rank.disconnect();
    let ended = rank.ended();
    assert_eq!(
        ended["ending"],
        json!({ "outcome": { "signalled": 15 }, "stopped": "time_limit", "at": ended["ending"]["at"] })
    );
    assert_eq!(rank.line_of("warned"), "warned");
}

#[test]
fn a_stop_that_a_daemon_began_is_continued_without_it() {
    let mut rank = Plan::shell(&format!("trap '' TERM; {LOOP}")).start();
    rank.line_of("pid");
    rank.say(&json!({ "stopping": { "why": "cancelled", "next": "kill", "due_at": 9 } }));
    rank.disconnect();
    let ended = rank.ended();
    assert_eq!(
        ended["ending"],
        json!({ "outcome": { "signalled": 9 }, "stopped": "cancelled", "at": ended["ending"]["at"] })
    );
}

#[test]
fn a_new_daemon_gets_the_complete_state() {
    let mut rank = Plan::shell(&format!("echo '{{\"step\": 5}}' > $COHABIT_PROGRESS; {LOOP}")).start();
    let step = |word: &serde_json::Value| word["progress"]["step"].as_u64();
    let started = rank.hear(|word| word["started"].as_u64());
    assert_eq!(rank.hear(step), 5);
    rank.disconnect();
    rank.connect();
    assert_eq!(rank.hear(|word| word["started"].as_u64()), started);
    assert_eq!(rank.hear(step), 5);
    rank.signal(9, "everything");
    rank.ended();
}

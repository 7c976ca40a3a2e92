//! One executor runs one rank after another, each as if it were the first.

use std::fs;
use std::io::{BufRead, Read};
use std::os::unix::net::UnixStream;

use serde_json::json;

use crate::kit::{Executor, Plan, identity, is_alive, payload, wait_for};

#[test]
fn ranks_follow_one_another_in_one_executor() {
    let mut executor = Executor::start();
    // Each directory exists until the executor's files have moved to the next.
    let mut plans = Vec::new();
    for code in [0, 3, 127] {
        let plan = Plan::shell(&format!("echo $PPID > $DIR/parent; echo said {code}; exit {code}"));
        let ended = executor.run(&plan);
        assert_eq!(ended["ending"]["outcome"], json!({ "exited": code }));
        let identity = identity(plan.path());
        let parent = fs::read_to_string(plan.path().join("parent")).unwrap();
        assert_eq!(parent, format!("{}\n", identity["pid"]));
        assert_eq!(identity["watchdog"]["pid"], executor.process.id());
        let log = fs::read(plan.path().join("log/00000000000000000000")).unwrap();
        assert!(log.ends_with(format!("said {code}\n").as_bytes()));
        plans.push(plan);
    }
    assert!(executor.process.try_wait().unwrap().is_none(), "it waits for the next");
    let mut late = UnixStream::connect(executor.socket()).unwrap();
    assert_eq!(late.read_to_end(&mut Vec::new()).unwrap(), 0, "there is nothing to say of what is over");
    let code = executor.hang_up().wait().unwrap();
    assert!(code.success(), "{code}");
}

#[test]
fn nothing_of_a_rank_reaches_the_next() {
    let executor = Executor::start();
    let left = "umask 077; ulimit -n 50; cd /; export LEFT=1; trap '' USR1; \
                setsid sleep 1000 & echo $! > $DIR/child; echo '{\"step\": 9}' > $COHABIT_PROGRESS";
    let first = Plan::shell(left);
    executor.run(&first);
    let child = fs::read_to_string(first.path().join("child")).unwrap().trim().parse().unwrap();
    assert!(!is_alive(child));
    let second = Plan::shell("umask; ulimit -n; pwd; echo $LEFT; kill -USR1 $$");
    let limit = second.path().canonicalize().unwrap();
    let ended = executor.run(&second);
    assert_eq!(ended["ending"]["outcome"], json!({ "signalled": 10 }));
    assert_eq!(ended["progress"], json!(null));
    let log = fs::read(second.path().join("log/00000000000000000000")).unwrap();
    // The lines may have been read one by one, and then lie in records of their own.
    let said = String::from_utf8(payload(&log)).unwrap();
    assert!(said.contains(&format!("\n{}\n\n", limit.display())) && !said.contains("\n50\n"), "{said}");
    executor.hang_up().wait().unwrap();
}

#[test]
fn a_rank_that_cannot_be_started_does_not_end_its_executor() {
    let executor = Executor::start();
    let ended = executor.run(&Plan::argv(&["no-such-program"]));
    assert_eq!(
        ended["ending"]["outcome"],
        json!({ "not_started": { "command_not_found": "no-such-program" } })
    );
    assert_eq!(executor.run(&Plan::shell("exit 4"))["ending"]["outcome"], json!({ "exited": 4 }));
    executor.hang_up().wait().unwrap();
}

/// The test holds the pipe of a rank that has ended: its executor still reads what is printed there.
#[test]
fn an_executor_that_still_reads_refuses_further_ranks() {
    let executor = Executor::start();
    let plan = Plan::shell("echo $$ > $DIR/pid; until [ -s $DIR/go ]; do sleep 0.02; done");
    let words = executor.try_hold(&plan).unwrap();
    let pid = wait_for("its pid", || {
        fs::read_to_string(plan.path().join("pid")).ok().filter(|text| text.ends_with('\n'))
    });
    let held = fs::OpenOptions::new().write(true).open(format!("/proc/{}/fd/1", pid.trim())).unwrap();
    fs::write(plan.path().join("go"), "go\n").unwrap();
    // Only then has the executor had time to refuse.
    words.lines().take_while(Result::is_ok).for_each(drop);
    let ended = fs::read_to_string(plan.path().join("outcome.json")).unwrap();
    assert!(ended.contains("exited"));
    wait_for("the refusal of another rank", || executor.try_hold(&Plan::shell("exit 0")).err());
    drop(held);
    let code = executor.hang_up().wait().unwrap();
    assert!(code.success(), "{code}");
}

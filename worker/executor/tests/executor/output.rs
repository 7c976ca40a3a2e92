//! The output and the progress of a rank.

use cohabit_host::LogLimits;
use cohabit_types::{Bytes, OutputFiles};
use serde_json::{Value, json};

use crate::kit::Plan;

#[test]
fn output_is_stored_byte_for_byte() {
    let mut rank = Plan::shell("printf 'a\\000\\377\\n'; printf no-newline").start();
    rank.ended();
    assert_eq!(rank.printed(), b"a\0\xff\nno-newline");
}

#[test]
fn large_output_is_stored_completely() {
    let mut rank = Plan::shell("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end").start();
    rank.ended();
    let printed = rank.printed();
    assert_eq!(printed.len(), 30_000_005);
    assert!(printed.ends_with(b"x\nend\n"));
}

#[test]
fn beyond_the_cap_the_latest_output_is_kept() {
    let mut rank = Plan::shell("seq 1 2000000")
        .change(|plan| plan.log = LogLimits { segment: Bytes(1 << 20), cap: Bytes(4 << 20) })
        .start();
    rank.ended();
    let printed = rank.printed_text();
    assert!(Bytes(printed.len() as u64) <= Bytes(4 << 20), "{} bytes kept", printed.len());
    assert!(Bytes(printed.len() as u64) > Bytes(2 << 20), "{} bytes kept", printed.len());
    assert!(printed.ends_with("\n1999999\n2000000\n"));
}

#[test]
fn output_of_a_rank_that_was_killed_is_kept() {
    let mut rank = Plan::shell("seq 1 100000; echo > $DIR/ready; while :; do sleep 0.02; done").start();
    rank.line_of("ready");
    rank.signal(9, "everything");
    rank.ended();
    assert!(rank.printed_text().ends_with("\n100000\n"));
}

/// The test is no process of the rank, and holds the pipe longer than the rank lives.
#[test]
fn a_pipe_held_by_a_foreign_process_is_not_waited_for() {
    let mut rank = Plan::shell("echo $$ > $DIR/pid; until [ -s $DIR/go ]; do sleep 0.02; done").start();
    let pipe = format!("/proc/{}/fd/1", rank.pid_of("pid"));
    let held = std::fs::OpenOptions::new().write(true).open(pipe).unwrap();
    std::fs::write(rank.path("go"), "go\n").unwrap();
    assert_eq!(rank.outcome(), json!({ "exited": 0 }));
    drop(held);
}

#[test]
fn progress_lines_are_reported() {
    let line = r#"{\"step\": $step, \"total\": 3, \"loss\": NaN, \"lr\": 0.5}"#;
    let lines = format!("for step in 1 2 3; do echo \"{line}\"; done; echo garbage");
    let script = format!("({lines}) >> $COHABIT_PROGRESS; while :; do sleep 0.02; done");
    let mut rank = Plan::shell(&script).start();
    let progress = rank.hear(|word| word.get("progress").filter(|p| p["step"] == 3).cloned());
    assert_eq!((&progress["total"], &progress["metrics"]), (&json!(3), &json!({ "lr": 0.5 })));
    rank.signal(9, "everything");
    assert_eq!(rank.ended()["progress"]["step"], 3);
}

#[test]
fn progress_bars_count_until_the_first_json_line() {
    let script = "printf ' 45%%|###   | 450/1000 [00:01<00:02, 8.1it/s]\\r' >&2
                  until [ -s $DIR/go ]; do sleep 0.02; done
                  echo '{\"step\": 7}' >> $COHABIT_PROGRESS; while :; do sleep 0.02; done";
    let mut rank = Plan::shell(script).start();
    let step = |word: &Value, step: u64| {
        (word["progress"]["step"] == step).then(|| word["progress"]["total"].clone())
    };
    assert_eq!(rank.hear(|word| step(word, 450)), json!(1000));
    std::fs::write(rank.path("go"), "go\n").unwrap();
    assert_eq!(rank.hear(|word| step(word, 7)), json!(null));
    rank.signal(9, "everything");
    rank.ended();
}

#[test]
fn output_also_goes_to_the_files_of_the_job() {
    let mut rank = Plan::shell("printf 'a\\000\\377\\n'; echo bad >&2")
        .change(|plan| {
            let at = |name: &str| Some(plan.path().join(name).to_str().unwrap().to_owned());
            let (stdout, stderr) = (at("job-%j.out"), at("job-%3j.err"));
            plan.spec.output = OutputFiles { stdout, stderr };
        })
        .start();
    rank.ended();
    assert_eq!(rank.printed().len(), 8);
    assert_eq!(std::fs::read(rank.path("job-1.out")).unwrap(), b"a\0\xff\n");
    assert_eq!(std::fs::read(rank.path("job-001.err")).unwrap(), b"bad\n");
}

#[test]
fn a_file_that_cannot_be_opened_fails_the_job_with_what_to_do() {
    let outcome = Plan::shell("echo")
        .change(|plan| plan.spec.output.stdout = Some("/nonexistent/%j.out".into()))
        .outcome();
    let why = outcome["not_started"]["other"].as_str().unwrap();
    assert!(why.contains("/nonexistent/1.out") && why.contains("create its directory"), "{why}");
}

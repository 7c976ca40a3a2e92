//! Sweeps: members with parameters, rules that stop some of them early, and the table that compares them.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::kit::*;

/// Reports its argument as the loss of two steps. One that is bad would go on for ever, and reports only then
/// that it is not stopped yet.
const TRAIN: &str = r#"#!/bin/sh
for step in 1 2; do
    echo "{\"step\": $step, \"total\": 2, \"loss\": $1, \"seed\": $2}" >> "$COHABIT_PROGRESS"
done
test "$1" != 0.9 || sleep 1000
"#;

/// Three members one after another, of which the second is worse than the first.
const SWEEP: [&str; 13] = [
    "--list",
    "lr=0.1,seed=3",
    "--list",
    "lr=0.9,seed=4",
    "--list",
    "lr=0.05,seed=5",
    "--at-once",
    "1",
    "--name",
    "tuning",
    "--",
    "./train.sh",
    "{lr}",
];

/// The same with a rule, for which the first rung is step 2.
const RULE: [&str; 8] =
    ["--metric", "loss", "--early-stop", "asha", "--early-stop-eta", "2", "--early-stop-grace", "2"];

fn cluster() -> Cluster {
    let cluster = Cluster::start(&["host:1"]);
    let script = cluster.folder().join("train.sh");
    std::fs::write(&script, TRAIN).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    cluster
}

fn sweep<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    [&["sweep"], flags, &SWEEP[..], &["{seed}"]].concat()
}

/// The members as `sweep show` lists them: index, state, and note.
fn members(shown: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let member = |it: &Value| {
        let index = text(&it["id"]).rsplit('.').next().unwrap().to_owned();
        (index, text(&it["state"]), text(&it["note"]))
    };
    shown["members"].as_array().unwrap().iter().map(member).collect()
}

/// The best come first, and the member that the rule stopped says so.
fn assert_stopped_early(shown: &Value) {
    let found = members(shown);
    let states: Vec<_> = found.iter().map(|(index, state, _)| (index.as_str(), state.as_str())).collect();
    assert_eq!(states, [("2", "COMPLETED"), ("0", "COMPLETED"), ("1", "CANCELLED")], "{shown}");
    assert_eq!(found[2].2, "asha at step 2: 0.9000 is not among the best 1 of the 2 that reached step 2");
}

#[test]
fn a_member_that_the_rule_stops_ends_early_and_the_table_compares_all() {
    let cluster = cluster();
    let ran = cluster.run(&sweep(&RULE));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("(tuning) with 3 members"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("stopping member") && ran.stderr.contains("asha at step 2"),
        "{}",
        ran.stderr
    );
    let shown = cluster.json(&["sweep", "show"]);
    assert_stopped_early(&shown);
    assert_eq!((&shown["metric"], &shown["goal"]), (&"loss".into(), &"min".into()));
    let rule = serde_json::json!({"rule": "asha", "grace": 2, "eta": 2, "rungs": 5});
    assert_eq!(shown["early_stopping"], rule);
    assert_eq!(shown["members"][0]["parameters"]["lr"], 0.05);
    assert_eq!(
        (&shown["members"][0]["best"], &shown["members"][0]["metrics"]["seed"]),
        (&0.05.into(), &5.0.into())
    );
    assert_eq!((&shown["members"][1]["step"], &shown["members"][1]["total"]), (&2.into(), &2.into()));

    let csv = cluster.ok(&["sweep", "show", "tuning", "--output", "csv", "--sort", "lr", "--reverse"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("id,lr,seed,state,step,loss,seed,best_loss,note"), "{csv}");
    assert!(lines[1].contains(".1,0.9,4,CANCELLED,2,0.9,4,0.9,asha"), "{csv}");
    let table = cluster.ok(&["sweep", "show", "last"]);
    assert!(table.lines().next().unwrap().contains("BEST loss"), "{table}");
    let unknown = cluster.run(&["sweep", "show", "--sort", "acc"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("loss, seed, lr"), "{}", unknown.stderr);
    let stranger = cluster.token("bob", &["--role", "user", "--name", "bob"]);
    let id = shown["id"].to_string();
    let refused = cluster.run(&["sweep", "show", id.trim_matches('"'), "--token-file", &stranger]);
    assert!(refused.code != 0 && !refused.stdout.contains("0.05"), "{}{}", refused.stdout, refused.stderr);
}

/// The rule is part of the sweep on the head, which may be restarted as well.
#[test]
fn resume_goes_on_with_the_rule_after_an_interruption_and_a_crash() {
    let mut cluster = cluster();
    let mut command = cluster.command(&sweep(&RULE));
    let mut followed = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("the sweep is there", || cluster.json(&["list"])["jobs"].as_array().unwrap().len() == 1);
    kill(Pid::from_raw(followed.id() as i32), Signal::SIGINT).unwrap();
    let output = CommandOutput::from(followed.wait_with_output().unwrap());
    assert_eq!(output.code, 130, "{}", output.stderr);
    assert!(output.stderr.contains("cohabit sweep resume"), "{}", output.stderr);
    let mut command = cluster.command(&["sweep", "resume", "tuning"]);
    followed = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    kill(Pid::from_raw(followed.id() as i32), Signal::SIGKILL).unwrap();
    followed.wait().unwrap();
    cluster.kill_head();
    cluster.restart_head();
    let resumed = cluster.run(&["sweep", "resume", "last"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_stopped_early(&cluster.json(&["sweep", "show", "tuning"]));
    let again = cluster.run(&["sweep", "resume", "tuning"]);
    assert_eq!(again.code, 0, "what the rule stopped earlier is no failure: {}", again.stderr);
}

#[test]
fn a_sweep_without_a_rule_is_submitted_only_and_its_members_may_be_stopped_for_others() {
    let cluster = cluster();
    std::fs::write(
        cluster.folder().join("sweep.toml"),
        "metric = \"accuracy\"\ngoal = \"max\"\n[parameters]\nlr = [0.1, 0.2]\nseed = \"1..2\"\n\
         [job]\ngpus = 0\nname = \"of-file\"\n",
    )
    .unwrap();
    let words = ["sweep", "--output", "quiet", "sweep.toml", "--name", "of-flag", "--", "./train.sh"];
    let sweep = cluster.ok(&[&words[..], &["{lr}", "{seed}"]].concat());
    let shown = cluster.end(sweep.trim());
    assert_eq!((&shown["name"], &shown["array"]["members"]), (&"of-flag".into(), &4.into()));
    assert_eq!(cluster.show(&format!("{}.3", sweep.trim()))["parameters"]["lr"], 0.2);
    let table = cluster.run(&["sweep", "show", "--output", "table"]);
    assert!(table.stdout.contains("never reported accuracy"), "{}", table.stdout);
    assert!(
        table.stderr.contains("no member has reported 'accuracy': reported are loss, seed"),
        "{}",
        table.stderr
    );
    let resumed = cluster.run(&["sweep", "resume", "of-flag"]);
    assert!(resumed.code == 2 && resumed.stderr.contains("no rule"), "{}", resumed.stderr);
    let other = cluster.submit(&["--name", "plain"], "true");
    let refused = cluster.run(&["sweep", "show", &other]);
    assert!(refused.code == 2 && refused.stderr.contains("no sweep of yours"), "{}", refused.stderr);
}

#[test]
fn bad_sweeps_are_refused_in_a_sentence_and_nothing_is_submitted() {
    let cluster = Cluster::start(&[]);
    let command = ["--", "train", "{lr}"];
    for (flags, why) in [
        (&["--grid", "lr=1..2", "--grid", "seed=1"][..], "does not use the parameter 'seed'"),
        (&["--grid", "seed=1"], "no parameter fills {lr}"),
        (&["--grid", "lr=1..10000000"], "10000000 members, and at most 10000"),
        (&["--grid", "lr=3..1"], "the range is empty: write 1..3"),
        (&["--random", "lr=log:0..1", "--samples", "2"], "above 0 only"),
        (&["--random", "lr=1..2"], "--samples 20"),
        (&["--grid", "lr=0.1..0.2"], "needs to know how many numbers"),
        (&["--grid", "lr=1", "--early-stop", "asha"], "--metric loss"),
        (&["--grid", "lr=1", "--metric", "loss", "--early-stop", "best"], "median, asha"),
        (&["--grid", "lr=1", "--array", "1-3"], "leave --array"),
        (&["--grid", "lr=1", "--random", "lr=1"], "cannot be used with"),
        (&["no.toml"], "no.toml: cannot be read"),
        (&[], "there are no parameters"),
    ] {
        let refused = cluster.run(&[&["sweep"], flags, &command[..]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(why), "{flags:?}: {}", refused.stderr);
    }
    let braces = cluster.run(&["sweep", "--grid", "lr=1", "--", "train", "{\"lr\": {lr}}"]);
    assert!(braces.code == 2 && braces.stderr.contains("{{"), "{}", braces.stderr);
    let nothing = cluster.run(&["sweep", "--grid", "lr=1"]);
    assert!(nothing.code == 2 && nothing.stderr.contains("write it after --"), "{}", nothing.stderr);
    assert_eq!(cluster.json(&["list"])["jobs"].as_array().unwrap().len(), 0);
    let dry = cluster.ok(&["sweep", "--dry-run", "--grid", "lr=1..9", "--", "train", "{{{lr}}}"]);
    assert!(dry.contains("train '{1}'") && dry.contains("4 more members"), "{dry}");
    assert_eq!(cluster.json(&["list"])["jobs"].as_array().unwrap().len(), 0);
}

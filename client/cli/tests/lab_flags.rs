//! No flag of `simulate`, `predict`, `policy` and `profile` is ignored in silence: each one always has an
//! effect, or a case here shows what is said where it has none.
#![cfg(all(feature = "worker", feature = "online"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const TRACE: &str = "submit_s,duration_s,gpus\n0,60,1\n5000,60,1\n9000,60,2\n";
const AT_ONCE: &str = "submit_s,duration_s,gpus\n0,60,1\n0,60,1\n";
const PAIRS: &str = "\
set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible
1,v100,mps,light,8,10,8,1000000000,,,,true
1,v100,mps,heavy,8,4,2,1000000000,,,,true
";
const TABLES: &str = "profile,cores,memory_gb,speed\nhungry,1,10,0.5\nhungry,2,10,1\n";
const WORKLOADS: &str = "[[workloads]]\nname = \"one\"\nmodel = \"one\"\nbatch = 1\ncommand = [\"true\"]\n";

/// What a flag does where it has no effect.
enum Answer {
    /// The command is refused.
    Refused,
    /// The command goes on after a warning.
    Warned,
}

/// A flag that has no effect beside the other words, what happens, and words of the message besides the flag.
type Case = (&'static str, &'static str, Answer, &'static str);

const SIMULATE: &str = "simulate --cluster 2x2:V100@25g,8c80G --policy fifo";
const POLICY: &str = "policy train --cluster 2x2:V100@25g,8c80G --out agents --episode-jobs 2 --taught 1 --episodes 0 \
                      --imitation-epochs 0 --validation 1";
const TRAIN: &str = "predict train --data pairs.csv --out model --model additive";
const PROFILE: &str = "profile --workloads w.toml --out t.csv --yes";

const SIMULATE_CASES: &[Case] = &[
    ("--format csv", "--trace synthetic:5", Answer::Refused, "is for trace files"),
    ("--strict", "--trace synthetic:5", Answer::Refused, "is for trace files"),
    ("--throughputs t.csv", "--trace synthetic:5", Answer::Refused, "is for trace files"),
    ("--throughputs t.csv", "--trace jobs.csv", Answer::Refused, "is for traces in the format gavel"),
    ("--throughputs-of sim/v100", "--trace jobs.csv", Answer::Refused, "--throughputs <FILE>"),
    ("--windows 2", "--trace jobs.csv", Answer::Refused, "--limit <COUNT>"),
    ("--stride 2", "--trace jobs.csv", Answer::Refused, "--windows <COUNT>"),
    ("--stride 2", "--trace jobs.csv --limit 1 --windows 1", Answer::Refused, "there is only one"),
    ("--load 0.5", "--trace at-once.csv", Answer::Warned, "all jobs are submitted at once"),
    ("--agents x", "--trace jobs.csv", Answer::Refused, "add --policy maifs"),
    ("--baseline fifo", "--trace jobs.csv", Answer::Refused, "only one runs"),
    ("--incentive", "--trace jobs.csv", Answer::Refused, "needs jobs that share GPUs"),
    ("--exclusive spd", "--trace jobs.csv", Answer::Warned, "no job may share a GPU"),
    ("--learn-online", "--trace jobs.csv", Answer::Warned, "no job may share a GPU"),
    (
        "--learn-online",
        "--trace jobs.csv --interference table:pairs.csv",
        Answer::Warned,
        "no policy asks for predictions",
    ),
    ("--interference model:pretrained", "--trace jobs.csv", Answer::Warned, "no job may share a GPU"),
    ("--configurations pairs.csv", "--trace wide.csv", Answer::Warned, "no job needs a single GPU"),
    ("--interference table:pairs.csv", "--trace wide.csv", Answer::Warned, "no job needs a single GPU"),
    (
        "--predictor none",
        "--trace jobs.csv --configurations pairs.csv --max-sharing 1",
        Answer::Warned,
        "--max-sharing 1",
    ),
    (
        "--configurations pairs.csv",
        "--trace jobs.csv --interference table:pairs.csv",
        Answer::Refused,
        "conflicts with",
    ),
    ("--predictor none", "--trace jobs.csv", Answer::Warned, "no job may share a GPU"),
    (
        "--predictor none",
        "--trace jobs.csv --configurations pairs.csv",
        Answer::Warned,
        "no policy asks for predictions",
    ),
    ("--max-slowdown 2", "--trace jobs.csv", Answer::Warned, "no job may share a GPU"),
    ("--max-sharing 2", "--trace jobs.csv", Answer::Warned, "no job may share a GPU"),
    ("--sensitivity-models hungry", "--trace jobs.csv", Answer::Refused, "--sensitivity <FILE|DIR>"),
    ("--known-sensitivity none", "--trace jobs.csv", Answer::Refused, "--sensitivity <FILE|DIR>"),
    ("--known-sensitivity none", "--trace jobs.csv --sensitivity tables.csv", Answer::Warned, "tune=on"),
    ("--preemptible 0.5", "--trace jobs.csv", Answer::Warned, "no policy stopped a job"),
    ("--stop-cost 1,1", "--trace jobs.csv", Answer::Warned, "no policy stopped a job"),
];
const SIMULATE_ALWAYS: &[&str] = &[
    "--trace",
    "--cluster",
    "--policy",
    "--seed",
    "--jobs",
    "--report",
    "--jobs-csv",
    "--users-csv",
    "--output",
    "--max-duration",
    "--max-gpus",
    "--skip",
    "--limit",
    "--estimator",
    "--progress",
    "--sensitivity",
    "--fair-share",
];

const TRAIN_CASES: &[Case] = &[
    ("--observed 2", "", Answer::Refused, "--hold-out <WHAT>"),
    ("--observed 2", "--hold-out sets,gpus", Answer::Refused, "no jobs are new"),
    ("--epochs 3", "", Answer::Refused, "solved in closed form"),
];
const TRAIN_ALWAYS: &[&str] =
    &["--model", "--data", "--format", "--out", "--hold-out", "--seed", "--progress", "--report", "--output"];

const POLICY_CASES: &[Case] = &[
    ("--format csv", "--trace synthetic:2", Answer::Refused, "is for trace files"),
    ("--strict", "--trace synthetic:2", Answer::Refused, "is for trace files"),
    ("--throughputs t.csv", "--trace synthetic:2", Answer::Refused, "is for trace files"),
    ("--throughputs-of sim/v100", "--trace synthetic:2", Answer::Refused, "--throughputs <FILE>"),
    ("--interference model:pretrained", "--trace synthetic:2", Answer::Warned, "no job may share a GPU"),
    ("--configurations pairs.csv", "--trace wide.csv", Answer::Warned, "no job needs a single GPU"),
    ("--interference table:pairs.csv", "--trace wide.csv", Answer::Warned, "no job needs a single GPU"),
    ("--predictor none", "--trace synthetic:2", Answer::Warned, "no job may share a GPU"),
    ("--max-slowdown 2", "--trace synthetic:2", Answer::Warned, "no job may share a GPU"),
    ("--max-sharing 2", "--trace synthetic:2", Answer::Warned, "no job may share a GPU"),
    ("--sensitivity-models hungry", "--trace synthetic:2", Answer::Refused, "--sensitivity <FILE|DIR>"),
    ("--known-sensitivity none", "--trace synthetic:2", Answer::Refused, "--sensitivity <FILE|DIR>"),
    ("--fixed-shares", "--trace synthetic:2", Answer::Warned, "jobs have no ranges"),
    ("--no-interference-features", "--trace synthetic:2", Answer::Warned, "no job may share a GPU"),
    ("--preemptible 0.5", "--trace synthetic:2", Answer::Warned, "maifs stops no job for another"),
    ("--stop-cost 1,1", "--trace synthetic:2", Answer::Warned, "maifs stops no job for another"),
    ("--no-attention", "--trace synthetic:2 --coordination single", Answer::Warned, "a single agent"),
];
const POLICY_ALWAYS: &[&str] = &[
    "--trace",
    "--cluster",
    "--max-duration",
    "--max-gpus",
    "--estimator",
    "--progress",
    "--sensitivity",
    "--out",
    "--episode-jobs",
    "--load",
    "--taught",
    "--imitation-epochs",
    "--episodes",
    "--validation",
    "--coordination",
    "--seed",
    "--show-progress",
    "--output",
];

const PROFILE_CASES: &[Case] = &[
    ("--pairs 3", "--set-sizes 1,3", Answer::Refused, "no pairs are measured"),
    ("--pairs 3", "--sharing exclusive", Answer::Refused, "no pairs are measured"),
    ("--triples 3", "--set-sizes 1,2", Answer::Refused, "no triples are measured"),
    ("--seed 3", "--set-sizes 1", Answer::Refused, "no sample of sets is drawn"),
];
const PROFILE_ALWAYS: &[&str] = &[
    "--workloads",
    "--out",
    "--gpu",
    "--sharing",
    "--set-sizes",
    "--steady",
    "--warm-up",
    "--max-time",
    "--yes",
    "--force",
    "--state",
    "--nvml-library",
    "--output",
];

fn run(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohabit"));
    command.env_clear().current_dir(folder).args(words.split_whitespace()).output().unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..20).map(|row| format!("{},60,2\n", 1_000 * row)).collect();
    let wide = format!("submit_s,duration_s,gpus\n{rows}");
    let throughputs =
        "source,gpu,consolidated,model,batch_size,scale_factor,steps_per_s\nsim,v100,True,A,1,1,5\n";
    for (file, text) in [
        ("jobs.csv", TRACE),
        ("at-once.csv", AT_ONCE),
        ("wide.csv", &wide),
        ("pairs.csv", PAIRS),
        ("tables.csv", TABLES),
        ("t.csv", throughputs),
        ("w.toml", WORKLOADS),
    ] {
        fs::write(folder.path().join(file), text).unwrap();
    }
    folder
}

/// Checks every case of a command, and that each of its flags has one or always has an effect.
fn check(command: &str, cases: &[Case], always: &[&str]) {
    let folder = folder();
    for (flag, others, answer, words) in cases {
        let output = run(folder.path(), &format!("{command} {others} {flag}"));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let name = flag.split_whitespace().next().unwrap();
        assert!(errors.contains(words) && errors.contains(name), "{flag} with '{others}': {errors}");
        match answer {
            Answer::Refused => assert!(!output.status.success(), "{flag} with '{others}': {errors}"),
            Answer::Warned => {
                let told = format!("warning: {name} ha");
                assert!(
                    output.status.success() && errors.contains(&told),
                    "{flag} with '{others}': {errors}"
                );
            }
        }
    }
    let verbs: Vec<&str> = command.split_whitespace().take_while(|word| !word.starts_with('-')).collect();
    let help = run(folder.path(), &format!("{} --help", verbs.join(" ")));
    let help = String::from_utf8(help.stdout).unwrap();
    let listed: BTreeSet<&str> = cases
        .iter()
        .filter_map(|case| case.0.split_whitespace().next())
        .chain(always.iter().copied())
        .collect();
    let flags: BTreeSet<&str> = help
        .lines()
        .filter(|line| line.starts_with("      --"))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(flags, listed, "flags of {command} (left) and those listed here (right)");
}

#[test]
fn no_flag_of_simulate_is_ignored_in_silence() {
    check(SIMULATE, SIMULATE_CASES, SIMULATE_ALWAYS);
}

#[test]
fn no_flag_of_predict_train_is_ignored_in_silence() {
    check(TRAIN, TRAIN_CASES, TRAIN_ALWAYS);
}

#[test]
fn no_flag_of_policy_train_is_ignored_in_silence() {
    check(POLICY, POLICY_CASES, POLICY_ALWAYS);
}

#[test]
fn no_flag_of_profile_is_ignored_in_silence() {
    check(PROFILE, PROFILE_CASES, PROFILE_ALWAYS);
}

#[test]
fn every_flag_of_commands_that_show_and_evaluate_has_an_effect() {
    check("predict eval", &[], &["--weights", "--data", "--format", "--output"]);
}

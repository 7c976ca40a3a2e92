//! `cohabit simulate` by itself: a small trace goes in, and what was promised comes out, twice the same.
#![cfg(feature = "simulate")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const TRACE: &str = "\
submit_s,duration_s,gpus,user,group
0,600,8,ada,large
1,30,1,bob,small
2,x,1,bob,small
3,30,1,bob,small
4,300,16,ada,wide
5,300,64,ada,too wide
6,60,4,bob,middle
";

fn simulate(folder: &Path, arguments: &[&str]) -> Output {
    simulate_on(folder, &[&["--cluster", "2x8:V100@25g"][..], arguments].concat())
}

/// The same with a cluster among the arguments.
fn simulate_on(folder: &Path, arguments: &[&str]) -> Output {
    fs::write(folder.join("jobs.csv"), TRACE).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohabit"));
    command.env_clear().current_dir(folder);
    command.args(["simulate", "--trace", "jobs.csv"]).args(arguments);
    command.output().expect("the binary runs")
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Without what a real clock says.
fn without_times(mut document: Value) -> Value {
    for run in document["runs"].as_array_mut().unwrap() {
        for key in ["plan_us_p50", "plan_us_p99", "wall_s"] {
            run.as_object_mut().unwrap().remove(key).unwrap();
        }
    }
    document
}

#[test]
fn every_policy_runs_every_job_and_a_seed_repeats_itself() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--policy", "fifo,spd,a-srpt", "--seed", "1,2", "--output", "json"];
    let output = simulate(folder.path(), &arguments);
    let report = document(&output);
    let runs = report["runs"].as_array().unwrap();
    let which: Vec<(&str, u64)> =
        runs.iter().map(|run| (run["policy"].as_str().unwrap(), run["seed"].as_u64().unwrap())).collect();
    assert_eq!(which, [("fifo", 1), ("spd", 1), ("a-srpt", 1), ("fifo", 2), ("spd", 2), ("a-srpt", 2)]);
    assert!(runs.iter().all(|run| run["jobs"] == 5 && run["completed"] == 5), "{report}");
    let left_out = &report["left_out"];
    assert_eq!(
        (&left_out["too_wide"], &left_out["invalid_rows"], &left_out["total"]),
        (&1.into(), &1.into(), &2.into())
    );
    assert!(
        runs.iter().all(|run| run["left_out"] == *left_out && run["not_completed"] == serde_json::json!({}))
    );
    let remarks = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = remarks.lines().collect();
    assert_eq!(lines[0], "line 4 is skipped: duration_s is 'x': expected a number");
    assert!(lines[1].starts_with("warning: the offered load is ") && lines.len() == 2, "{remarks}");
    assert!(lines[1].contains("Give --load 0.9"), "{remarks}");
    assert_eq!(without_times(report), without_times(document(&simulate(folder.path(), &arguments))));
}

#[test]
fn windows_are_runs_of_their_own_and_threads_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let usual = ["--policy", "fifo,spd", "--limit", "2", "--output", "json"];
        without_times(document(&simulate(folder.path(), &[&usual, arguments].concat())))
    };
    let windows = run(&["--windows", "2", "--jobs", "1"]);
    assert_eq!(windows, run(&["--windows", "2", "--jobs", "3"]));
    let which = |run: &Value| (run["window"].as_u64().unwrap(), run["seed"].as_u64().unwrap());
    let runs = windows["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(which).collect::<Vec<_>>(), [(1, 1), (1, 1), (2, 2), (2, 2)]);
    let mut alone = run(&["--skip", "2", "--seed", "2"]);
    for (alone, window) in alone["runs"].as_array_mut().unwrap().iter_mut().zip(&runs[2..]) {
        alone["window"] = 2.into();
        assert_eq!(alone, window, "a window is what --skip and --seed select");
    }
    assert_eq!(windows["comparisons"][1]["observations"], 2);
}

/// `light` and `heavy` are slowed by a quarter and to half of their speed beside each other.
#[cfg(feature = "predict")]
const PAIRS: &str = "\
set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible
1,v100,mps,light,8,10,8,1000000000,,,,true
1,v100,mps,heavy,8,4,2,1000000000,,,,true
2,v100,mps,light,8,10,9,1000000000,,,,true
2,v100,mps,light,8,10,9,1000000000,,,,true
3,v100,mps,heavy,8,4,2,1000000000,,,,true
3,v100,mps,heavy,8,4,2,1000000000,,,,true
";

/// Trains a model on `pairs.csv`.
#[cfg(feature = "predict")]
fn train(folder: &Path, arguments: &[&str]) {
    let mut train = Command::new(env!("CARGO_BIN_EXE_cohabit"));
    train.env_clear().current_dir(folder);
    let output = train.args(["predict", "train", "--data", "pairs.csv"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[cfg(feature = "predict")]
fn a_trained_model_predicts_for_policies_or_is_the_ground_truth() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pairs.csv"), PAIRS).unwrap();
    train(folder.path(), &["--model", "additive", "--out", "model"]);
    let simulated = |arguments: &[&str]| {
        let usual = ["--policy", "isacpp", "--exclusive", "fifo", "--output", "json"];
        document(&simulate(folder.path(), &[&usual, arguments].concat()))
    };
    let asked = simulated(&["--interference", "table:pairs.csv", "--predictor", "model:model"]);
    assert_eq!(
        (&asked["interference"], &asked["predictor"]),
        (&"table:pairs.csv".into(), &"model:model".into())
    );
    let truth = simulated(&["--interference", "model:model", "--configurations", "pairs.csv"]);
    for document in [&asked, &truth] {
        let policies: Vec<&Value> =
            document["runs"].as_array().unwrap().iter().map(|run| &run["policy"]).collect();
        assert_eq!(policies, ["exclusive fifo", "isacpp"]);
        assert!(document["runs"].as_array().unwrap().iter().all(|run| run["completed"] == 5), "{document}");
    }
}

#[test]
#[cfg(feature = "predict")]
fn networks_predict_for_the_policies_of_their_papers() {
    let folder = tempfile::tempdir().unwrap();
    // With a utilization that one model lacks, IASP has a metric to complete.
    let pairs = PAIRS.replace("heavy,8,4,2,1000000000,,,", "heavy,8,4,2,1000000000,,0.9,");
    assert_ne!(pairs, PAIRS);
    fs::write(folder.path().join("pairs.csv"), pairs).unwrap();
    for (model, policy) in [("iapp", "clwp-nlwp"), ("e-ggat", "isacpp"), ("e-ggat-plus", "isacpp")] {
        train(folder.path(), &["--model", model, "--out", model, "--epochs", "1"]);
        let predictor = format!("model:{model}");
        let output = ["--policy", policy, "--output", "json"];
        let asked = ["--interference", "table:pairs.csv", "--predictor", &predictor];
        let report = document(&simulate(folder.path(), &[&output[..], &asked].concat()));
        assert_eq!(report["runs"][0]["completed"], 5, "{model}: {report}");
    }
}

#[test]
#[cfg(feature = "online")]
fn runs_that_learn_repeat_themselves_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pairs.csv"), PAIRS).unwrap();
    let learned = |threads: &str, more: &[&str]| {
        let usual = ["--policy", "isacpp,fifo", "--interference", "table:pairs.csv", "--progress", "1"];
        let format = ["--output", "json", "--jobs", threads];
        without_times(document(&simulate(folder.path(), &[&usual[..], &format, more].concat())))
    };
    let cold = ["--learn-online", "--predictor", "none"];
    let document = learned("1", &cold);
    assert_eq!(document, learned("2", &cold));
    let runs = document["runs"].as_array().unwrap();
    assert_eq!((&runs[0]["learned_models"], &runs[1]["learned_models"]), (&0.into(), &Value::Null));
    assert!(learned("1", &["--predictor", "none"])["runs"][0]["learned_models"].is_null());
    let output = simulate(folder.path(), &["--learn-online", "--predictor", "truth"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

/// `hungry` is twice as fast with twice the cores of the proportional share; `frugal` needs one for each GPU.
const TABLES: &str = "\
profile,cores,memory_gb,speed
hungry,1,10,0.5
hungry,2,10,1
hungry,4,10,2
frugal,1,,7
";

#[test]
fn jobs_have_ranges_and_a_policy_that_tunes_makes_use_of_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tables.csv"), TABLES).unwrap();
    let simulated = |known: &str, arguments: &[&str]| {
        let cluster = ["--cluster", "2x8:V100@25g,16c160G", "--policy", "fifo,fifo:tune=on"];
        let tables = ["--sensitivity", "tables.csv", "--known-sensitivity", known, "--output", "json"];
        without_times(document(&simulate_on(folder.path(), &[&cluster[..], &tables, arguments].concat())))
    };
    let exact = simulated("exact", &["--sensitivity-models", "hungry"]);
    let used = (&exact["sensitivity"]["known"], &exact["sensitivity"]["models"]);
    assert_eq!(used, (&"exact".into(), &serde_json::json!(["hungry"])));
    let figures = |document: &Value, run: usize| {
        let run = &document["runs"][run];
        (run["speed_by_share"].as_f64().unwrap(), run["allotments"].as_u64().unwrap())
    };
    assert_eq!(figures(&exact, 0), (1.0, 0), "the proportional share");
    assert!(figures(&exact, 1).0 > 1.0, "{exact}");
    assert_eq!(simulated("noisy:0.3", &[]), simulated("noisy:0.3", &["--jobs", "1"]));
    assert_eq!(figures(&simulated("none", &[]), 0), (1.0, 0));
}

#[test]
fn the_report_is_written_and_the_command_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = simulate(folder.path(), &["--policy", "fifo", "--report", "report.html"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("POLICY"));
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("cohabit simulate --trace jobs.csv --cluster 2x8:V100@25g --policy fifo"));
    assert!(page.contains("<svg") && page.contains("Accuracy of estimates"));
}

/// The rows of a CSV file by column.
fn rows(path: &Path) -> Vec<std::collections::BTreeMap<String, String>> {
    csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect()
}

#[test]
fn jobs_and_users_are_exported_for_every_policy() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["--jobs-csv", "each-job.csv", "--users-csv", "each-user.csv"];
    let report =
        document(&simulate(folder.path(), &[&files[..], &["--seed", "1,2", "--output", "json"]].concat()));
    let (jobs, users) =
        (rows(&folder.path().join("each-job.csv")), rows(&folder.path().join("each-user.csv")));
    let runs = report["runs"].as_array().unwrap();
    let policies: Vec<&str> = runs.iter().take(4).map(|run| run["policy"].as_str().unwrap()).collect();
    assert_eq!(policies, ["fifo", "easy-backfill", "a-srpt", "hybrid"], "the default policies");
    assert_eq!((jobs.len(), users.len()), (8 * 5, 8 * 2));
    for run in runs {
        let of_run = |row: &&std::collections::BTreeMap<String, String>| {
            run["policy"] == row["policy"] && row["seed"].parse().ok() == run["seed"].as_u64()
        };
        let number = |row: &std::collections::BTreeMap<String, String>, column: &str| {
            row[column].parse::<f64>().unwrap()
        };
        for (column, metric) in
            [("jct_s", "mean_jct_s"), ("wait_s", "mean_wait_s"), ("slowdown", "mean_slowdown")]
        {
            let all: Vec<f64> = jobs.iter().filter(of_run).map(|row| number(row, column)).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            assert!((mean - run[metric].as_f64().unwrap()).abs() < 1e-9, "{column}: {mean} in {run}");
        }
        let held: f64 =
            jobs.iter().filter(of_run).map(|row| number(row, "run_s") * number(row, "gpus")).sum();
        let hours: f64 = users.iter().filter(of_run).map(|row| number(row, "gpu_hours")).sum();
        assert!((held / 3_600.0 - hours).abs() < 1e-9, "{hours}");
        let lines: Vec<&str> = jobs.iter().filter(of_run).map(|row| row["line"].as_str()).collect();
        assert_eq!(lines, ["2", "3", "5", "6", "8"], "lines 4 and 7 are left out");
        assert!(
            jobs.iter()
                .filter(of_run)
                .all(|row| row["nodes"].split(';').all(|node| node.starts_with("node-")))
        );
    }
}

#[test]
fn jobs_that_are_left_out_are_in_the_table_with_the_reasons() {
    let folder = tempfile::tempdir().unwrap();
    let printed = |arguments: &[&str]| {
        let output = simulate(folder.path(), &[&["--policy", "fifo,spd"], arguments].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let table = printed(&["--max-duration", "400s", "--skip", "1", "--limit", "2"]);
    for words in [
        "LEFT OUT",
        "Offered load: ",
        "Left out of the trace: 5 jobs",
        "1  invalid rows",
        "1  longer than --max-duration",
        "1  before --skip",
        "2  behind --limit",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(printed(&[]).contains("1  need more GPUs than the cluster has"));
}

#[test]
fn traces_are_read_in_any_dress_and_bad_numbers_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let simulated = |text: &str| {
        fs::write(folder.path().join("trace.csv"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cohabit"));
        command.env_clear().current_dir(folder.path());
        command.args([
            "simulate",
            "--trace",
            "trace.csv",
            "--cluster",
            "1x2:V100",
            "--policy",
            "fifo",
            "--output",
            "json",
        ]);
        command.output().unwrap()
    };
    let one = "\u{feff}submit_s,duration_s,gpus\r\n5,10,1\r\n";
    assert_eq!(document(&simulated(one))["runs"][0]["jobs"], 1);
    let rows = [
        "0,NaN,1",
        "0,-5,1",
        "-1,5,1",
        "inf,5,1",
        "0,1e300,1",
        "0,5,1e9",
        "0,5,99999999999999999999",
        "0,5,-1",
        "0,5",
        "0,5,1,2",
        "0,999999999,1",
    ];
    let text = format!("submit_s,duration_s,gpus\n0,5,1\n{}\n", rows.join("\n"));
    let document = document(&simulated(&text));
    assert_eq!(
        (&document["left_out"]["invalid_rows"], &document["runs"][0]["jobs"]),
        (&rows.len().into(), &1.into())
    );
    let longest = "submit_s,duration_s,gpus\n0,315360000,2\n1,315360000,2\n2,1,1\n";
    assert_eq!(self::document(&simulated(longest))["runs"][0]["completed"], 3);
    for (text, words) in [
        ("", "trace.csv: line 1: unknown trace format: found an empty line"),
        ("submit_s,duration_s,gpus\n", "the file has no usable job"),
        ("time;length\n1;2\n", "found the columns 'time;length'; the formats are csv (submit_s"),
        ("submit_s,duration_s\n1,2\n", "line 1: missing column gpus: files in the format csv have"),
    ] {
        let output = simulated(text);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(65), "{text}: {errors}");
        assert!(errors.contains(words), "{text}: {errors}");
    }
}

#[test]
fn errors_have_messages_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, words) in [
        (&["--strict"][..], 65, "jobs.csv: line 4: duration_s is 'x'"),
        (&["--skip", "9"], 65, "no jobs are left"),
        (&["--limit", "4", "--windows", "2"], 65, "window 2 has only"),
        (&["--max-gpus", "1", "--max-duration", "1s"], 65, "no jobs are left"),
        (&["--incentive"], 2, "--incentive needs jobs that share GPUs"),
        (&["--policy", "fifo", "--baseline", "spd"], 2, "is not among the policies"),
        (&["--format", "philly"], 65, "jobs.csv: line 1: missing columns timestamp"),
        (&["--throughputs", "nowhere.csv"], 66, "cannot open nowhere.csv"),
        (
            &["--policy", "fifo", "--report", "no/such/folder.html"],
            74,
            "cannot write --report no/such/folder.html: No such",
        ),
        (&["--policy", "fifo", "--jobs-csv", "."], 74, "cannot write --jobs-csv .: is a directory"),
        (
            &["--policy", "fifo", "--users-csv", "jobs.csv/x"],
            74,
            "cannot write --users-csv jobs.csv/x: Not a directory",
        ),
        (&["--jobs-csv", "same.csv", "--users-csv", "./same.csv"], 2, "name the same file same.csv"),
        (&["--predictor", "model:nowhere"], 66, "cannot read nowhere/card.json"),
        (&["--policy", "none"], 2, "there is no policy 'none'"),
        (&["--sensitivity", "t.csv"], 2, "which '2x8:V100@25g' (--cluster) does not have: write them after"),
        (&["--known-sensitivity", "exact"], 2, "--sensitivity <FILE|DIR>"),
    ] {
        let output = simulate(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}

#[test]
fn tables_that_do_not_suit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tables.csv"), TABLES).unwrap();
    fs::write(folder.path().join("bad.csv"), "profile,cores,memory_gb,speed\na,1,1,fast\n").unwrap();
    for (cluster, arguments, code, words) in [
        ("1x8:V100,8c80G", &["--sensitivity", "nowhere"][..], 65, "nowhere: it cannot be read: No such file"),
        (
            "1x8:V100,8c80G",
            &["--sensitivity", "bad.csv"],
            65,
            "bad.csv: line 2, column 'speed': 'fast' is not",
        ),
        ("1x8:V100,8c80G", &["--sensitivity", "."], 65, "it has no tables: give a CSV file, or a directory"),
        (
            "1x8:V100,8c80G",
            &["--sensitivity", "tables.csv", "--sensitivity-models", "frugal,none"],
            2,
            "'none' is not a profile of tables.csv, which has frugal, hungry",
        ),
        (
            "1x8:V100,8c72G",
            &["--sensitivity", "tables.csv"],
            65,
            "profile 'hungry' of --sensitivity needs 10 GiB",
        ),
    ] {
        let output = simulate_on(folder.path(), &[&["--cluster", cluster][..], arguments].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

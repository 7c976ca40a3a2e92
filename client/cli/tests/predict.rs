//! `cohabit predict`: trains and evaluates a model on a small table.
#![cfg(feature = "predict")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// All pairs of six jobs. The slowdown of a job depends on its number and that of its partner. The largest
/// two do not fit together, nor does the largest with itself.
fn table() -> String {
    let mut text =
        "set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible\n".to_owned();
    let mut set = 0;
    for one in 0..6_u32 {
        for other in one..6 {
            set += 1;
            let feasible = one + other < 9;
            for (own, partner) in [(one, other), (other, one)] {
                let slowdown = 1.0 + 0.1 * f64::from(own) + 0.05 * f64::from(partner);
                let rate = if feasible { (10.0 / slowdown).to_string() } else { String::new() };
                writeln!(text, "{set},H200,mps,net{own},8,10,{rate},,,,,{feasible}").unwrap();
            }
        }
    }
    text
}

fn predict(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohabit"));
    command.env_clear().current_dir(folder).arg("predict").args(arguments);
    command.output().expect("the binary runs")
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const TRAIN: [&str; 7] = ["train", "--model", "gaussian", "--data", "pairs.csv", "--out", "model"];

fn trained(folder: &Path, more: &[&str]) -> Output {
    fs::write(folder.join("pairs.csv"), table()).unwrap();
    predict(folder, &[&TRAIN, more].concat())
}

#[test]
fn a_trained_model_is_as_accurate_as_required() {
    let folder = tempfile::tempdir().unwrap();
    let card =
        document(&trained(folder.path(), &["--hold-out", "models", "--observed", "2", "--output", "json"]));
    assert_eq!(
        (&card["schema"], &card["model"], &card["data"]["sets"]),
        (&1.into(), &"gaussian".into(), &21.into())
    );
    assert_eq!(
        (&card["held_out"][0]["split"], &card["held_out"][0]["observed"]),
        (&"models".into(), &2.into())
    );
    assert!(card["held_out"][0]["figures"]["mape_slowdown"].as_f64().unwrap() < 0.2, "{card}");
    let asked = ["eval", "--weights", "model", "--data", "pairs.csv", "--output", "json"];
    let report = document(&predict(folder.path(), &asked));
    let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    let mut promised = vec![
        "schema",
        "model",
        "rows",
        "mape_slowdown",
        "p95_ape_slowdown",
        "max_ape_slowdown",
        "coverage_1sigma",
        "coverage_2sigma",
        "mape_memory",
        "mape_memory_scaled",
        "mape_utilisation",
        "mape_utilisation_scaled",
        "infeasible_recall",
        "infeasible_precision",
        "us_per_set",
        "usage",
    ];
    promised.sort_unstable();
    assert_eq!(keys, promised);
    assert_eq!((&report["rows"], &report["mape_memory"]), (&38.into(), &Value::Null));
    assert!(report["mape_slowdown"].as_f64().unwrap() < 0.03, "{report}");
    assert_eq!(report["infeasible_recall"], 1.0);
    assert!(report["us_per_set"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_same_command_trains_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let weights = || {
        assert!(trained(folder.path(), &[]).status.success());
        ["card.json", "weights.safetensors"]
            .map(|file| fs::read(folder.path().join("model").join(file)).unwrap())
    };
    assert!(weights() == weights());
}

#[test]
fn the_card_and_the_report_say_how_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let output = trained(folder.path(), &["--report", "report.html", "--progress"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("the model: epoch 1 of 1, loss "));
    let command = "cohabit predict train --model gaussian --data pairs.csv --out model";
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains(command) && page.contains("<h2>Errors</h2>") && page.ends_with("</html>\n"));
    let shown = String::from_utf8(predict(folder.path(), &["show", "model"]).stdout).unwrap();
    assert!(
        shown.contains("pairs.csv (co-location): 21 sets, 38 rows") && shown.contains(command),
        "{shown}"
    );
}

#[test]
fn errors_have_messages_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.csv"), table().replacen(",8,10,", ",8,ten,", 1)).unwrap();
    fs::write(folder.path().join("alone.csv"), table().lines().take(2).collect::<Vec<_>>().join("\n"))
        .unwrap();
    fs::write(folder.path().join("trace.csv"), "submit_s,duration_s,gpus\n0,1,1\n").unwrap();
    let train =
        |data: &'static str, model: &'static str| ["train", "--out", "m", "--data", data, "--model", model];
    for (arguments, code, words) in [
        (
            &train("bad.csv", "additive")[..],
            65,
            "bad.csv: line 2, column 'solo_rate': 'ten': expected a number",
        ),
        (&train("alone.csv", "additive"), 65, "nothing to learn from"),
        (&train("nowhere.csv", "additive"), 66, "cannot open nowhere.csv"),
        (&train("bad.csv", "magic"), 2, "unknown kind of model 'magic': the kinds are additive, low-rank"),
        (
            &train("trace.csv", "additive"),
            65,
            "trace.csv: line 1: unknown co-location table format: found the columns 'submit_s",
        ),
        (
            &["eval", "--weights", "pretrained", "--data", "trace.csv"],
            65,
            "line 1: unknown co-location table format",
        ),
        (&["show", "nowhere"], 66, "cannot read nowhere/card.json"),
    ] {
        let output = predict(folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && errors.contains(words), "{arguments:?}: {errors}");
    }
}

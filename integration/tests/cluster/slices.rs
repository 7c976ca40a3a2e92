//! Jobs that run in slices of time, and jobs that stall.

use std::path::Path;
use std::process::Command;

use crate::kit::*;

/// The Python interpreter: `$PYTHON`, or `python3`.
fn python() -> Option<String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let works = Command::new(&python).arg("--version").output().is_ok_and(|it| it.status.success());
    if !works {
        say(&format!("skipped: there is no {python}"));
    }
    works.then_some(python)
}

/// The last line of what was printed.
fn last_line(printed: &str) -> &str {
    printed.lines().next_back().unwrap_or_default()
}

/// The example of the documentation, with shorter slices.
#[test]
fn a_training_in_slices_goes_on_where_it_was() {
    let Some(python) = python() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let example = root.join("examples/scripts/slices.py").to_str().unwrap().to_owned();
    let package = root.join("client/python/python").to_str().unwrap().to_owned();
    let environment = format!("PYTHONPATH={package}");
    let cluster = Cluster::start(&["host:1"]);
    let slices = ["--time", "4s", "--requeue-on-timeout", "--stop-signal", "SIGUSR1@2s"];
    // All steps take longer than two slices.
    let training = [&python, &example, "--steps", "160", "--step-seconds", "0.05"];
    let flags = ["submit", "--output", "quiet", "--env", &environment];
    let command = [&flags[..], &slices, &["--"], &training].concat();
    let job = cluster.ok(&command).trim().to_owned();
    let shown = cluster.end(&job);
    // The last attempt may find that all steps are taken.
    assert_eq!(shown["state"], "COMPLETED");
    let attempts = shown["attempts"].as_array().unwrap().len();
    assert!(attempts >= 3, "{attempts} attempts");
    let (mut next, mut printed) = ("0".to_owned(), String::new());
    for attempt in 1..=attempts {
        let of_attempt = cluster.ok(&["logs", "--attempt", &attempt.to_string(), &job]);
        // On a busy machine, Python may have begun no training when the signal came.
        if of_attempt.is_empty() {
            continue;
        }
        printed = of_attempt;
        assert!(printed.starts_with(&format!("begins at step {next}\n")), "attempt {attempt}: {printed}");
        let saved = printed.lines().rev().find_map(|line| line.strip_prefix("saved, to go on at step "));
        next = saved.map_or(next, str::to_owned);
    }
    assert!(next.parse::<u32>().unwrap() > 0, "nothing was saved");
    let mut undisturbed = Command::new(&python);
    undisturbed.arg(&example).args(["--steps", "160", "--step-seconds", "0"]).env("PYTHONPATH", &package);
    let undisturbed = String::from_utf8(undisturbed.output().unwrap().stdout).unwrap();
    let end = last_line(&undisturbed);
    assert!(end.starts_with("ended after 160 steps"), "{undisturbed}");
    assert_eq!(last_line(&printed), end, "each step was taken once");
    let explained = cluster.ok(&["explain", &job]);
    assert!(
        explained.contains("queued again after attempt 1 because it reached its time limit"),
        "{explained}"
    );
    assert!(explained.contains("attempt 1 was sent SIGUSR1"), "{explained}");
}

#[test]
fn a_stalled_job_is_pointed_out_and_its_metrics_need_not_be_numbers() {
    let cluster = Cluster::start(&["host:1"]);
    let script = r#"echo '{"step": 7, "loss": NaN}' >> "$COHABIT_PROGRESS"; sleep 600"#;
    let job = cluster.submit(&["--stall-timeout", "1s"], script);
    let is_stall = |line: &str| line.contains("attempt 1 stalled: ") && line.contains("after step 7");
    let stalled = || cluster.ok(&["explain", &job]).lines().any(is_stall);
    until("the stall is in the history", stalled);
    let explained = cluster.ok(&["explain", &job]);
    assert!(explained.contains("It has reported no step for"), "{explained}");
    assert!(cluster.ok(&["list"]).contains("loss NaN"));
    assert_eq!(cluster.show(&job)["progress"]["metrics"]["loss"], "NaN");
    cluster.ok(&["cancel", &job]);
    let ended = cluster.end(&job);
    assert_eq!(
        (ended["state"].as_str(), &ended["progress"]["metrics"]["loss"]),
        (Some("CANCELLED"), &"NaN".into())
    );
}

#[test]
fn a_stalled_job_is_queued_again_where_it_asks_for_that() {
    let cluster = Cluster::start(&["host:1"]);
    let script = r#"test $COHABIT_ATTEMPT = 2 || sleep 600"#;
    let job = cluster.submit(&["--stall-timeout", "1s", "--on-stall", "requeue"], script);
    cluster.completed_in(2, &job);
    let refused = cluster.run(&["submit", "--on-stall", "requeue", "--", "true"]);
    assert_eq!((refused.code, refused.stderr.contains("--stall-timeout")), (2, true), "{}", refused.stderr);
    let refused = cluster.run(&["submit", "--requeue-on-timeout", "--", "true"]);
    assert!(refused.code != 0 && refused.stderr.contains("--time"), "{}", refused.stderr);
}

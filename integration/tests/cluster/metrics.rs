//! The metrics of jobs over their steps.

use crate::kit::*;

/// Reports three losses and fails in its first attempt, and two more in its second.
const TWO_ATTEMPTS: &str = r#"
    for step in 1 2 3; do
        echo "{\"step\": $((step + 3 * (COHABIT_ATTEMPT - 1))), \"loss\": $COHABIT_ATTEMPT.5}" >> "$COHABIT_PROGRESS"
    done
    test $COHABIT_ATTEMPT = 2"#;

#[test]
fn the_series_of_all_attempts_survives_the_job_and_its_worker() {
    let mut cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&["--retries", "1"], TWO_ATTEMPTS);
    cluster.completed_in(2, &job);
    cluster.stop_worker(0);
    cluster.restart_worker(0);
    let csv = || cluster.run(&["metrics", &job, "--csv"]);
    until("the worker is back", || csv().code == 0);
    let csv = csv().stdout;
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["job", "attempt", "step", "time", "loss"]);
    let values: Vec<_> = rows[1..].iter().map(|row| (row[1], row[2], row[4])).collect();
    let first = ["1", "2", "3"].map(|step| ("1", step, "1.5"));
    let second = ["4", "5", "6"].map(|step| ("2", step, "2.5"));
    assert_eq!(values, [first, second].concat());
    let json = cluster.json(&["metrics", &job]);
    assert_eq!(json["series"][1]["reports"][2]["metrics"]["loss"], 2.5);
    assert!(cluster.ok(&["metrics", &job]).contains("loss"));
    assert!(cluster.ok(&["metrics", &job, "--plot"]).contains("step"));
    assert!(cluster.ok(&["list"]).contains("loss 2.5"), "{}", cluster.ok(&["list"]));
    let unknown = cluster.run(&["metrics", &job, "--metric", "accuracy"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("there are loss"), "{}", unknown.stderr);
}

#[test]
fn members_of_an_array_have_rows_of_their_own_and_strangers_see_none() {
    let cluster = Cluster::start(&["host:2"]);
    let script = r#"echo "{\"step\": 1, \"loss\": $COHABIT_ARRAY_INDEX}" >> "$COHABIT_PROGRESS""#;
    let array = cluster.submit(&["--array", "1-3"], script);
    cluster.end(&array);
    let csv = cluster.ok(&["metrics", &array, "--csv"]);
    let jobs: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(jobs, [1, 2, 3].map(|index| format!("{array}.{index}")));
    let silent = cluster.submit(&[], "true");
    cluster.end(&silent);
    let none = cluster.run(&["metrics", &silent]);
    assert!(none.code == 0 && none.stderr.contains("COHABIT_PROGRESS"), "{}", none.stderr);
    let stranger = cluster.token("bob", &["--role", "user", "--name", "bob"]);
    let refused = cluster.run(&["metrics", &array, "--token-file", &stranger]);
    assert_eq!(refused.code, 77, "{}", refused.stderr);
}

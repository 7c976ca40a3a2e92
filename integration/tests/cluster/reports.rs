//! `report`: its figures are those of the jobs, count once whatever happens to the head, and show nobody more
//! than they may see.

use jiff::Timestamp;
use serde_json::Value;

use crate::kit::*;

/// A head with a worker of two slots, a project of ada and ben, and the tokens of ada, ben and cem.
fn cluster() -> (Cluster, [String; 3]) {
    let mut cluster = Cluster::with_head(&[], &[]);
    cluster.add_worker("host:2");
    let tokens = ["ada", "ben", "cem"].map(|name| cluster.token(name, &["--role", "user", "--name", name]));
    let file = cluster.path("share.toml");
    std::fs::write(&file, "[projects.vision]\nweight = 3\nusers = [\"ada\", \"ben\"]\n").unwrap();
    cluster.ok(&["share", "apply", &file]);
    (cluster, tokens)
}

/// The report with these flags. Without a time it ends now.
fn report(cluster: &Cluster, flags: &[&str]) -> Value {
    cluster.json(&[&["report"], flags].concat())
}

fn row<'a>(report: &'a Value, project: Option<&str>, user: Option<&str>) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    let is_wanted = |row: &&Value| row["project"].as_str() == project && row["user"].as_str() == user;
    rows.iter().find(is_wanted).unwrap_or_else(|| panic!("{project:?} {user:?}: {report}"))
}

fn seconds(from: &Value, to: &Value) -> f64 {
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    time(to).duration_since(time(from)).as_secs_f64()
}

/// The seconds on devices that the attempts of these jobs held, by their records.
fn held(cluster: &Cluster, jobs: &[&str]) -> f64 {
    let of_attempt = |attempt: &Value| {
        let ranks = attempt["ranks"].as_array().unwrap();
        let devices = ranks
            .iter()
            .map(|rank| rank["share"].as_f64().unwrap() * rank["devices"].as_array().unwrap().len() as f64);
        devices.sum::<f64>() * seconds(&attempt["started_at"], &attempt["ended_at"])
    };
    let of_job = |job: &&str| -> f64 {
        cluster.show(job)["attempts"].as_array().unwrap().iter().map(of_attempt).sum()
    };
    jobs.iter().map(of_job).sum()
}

#[track_caller]
fn assert_near(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    assert!((found - expected).abs() < 1e-3, "{what}: {found} instead of {expected}");
}

#[test]
fn the_figures_are_those_of_the_jobs_and_count_once_although_the_head_is_killed() {
    let (mut cluster, [ada, ben, cem]) = cluster();
    let go = cluster.path("go");
    let wait = format!("until test -e {go}; do sleep 0.02; done");
    let whole = cluster.submit(&["--token-file", &ada, "--gpus", "2"], &wait);
    cluster.until_state(&whole, "RUNNING");
    let queued = cluster.submit(&["--token-file", &ben], "exit 3");
    let part = cluster.submit(&["--token-file", &cem, "--gpus", "0.5"], "true");
    let cancelled = cluster.submit(&["--token-file", &ben, "--hold"], "true");
    cluster.ok(&["cancel", &cancelled]);
    let live = report(&cluster, &["--by", "user"]);
    assert!(row(&live, None, Some("ada"))["held_gpu_s"].as_f64().unwrap() > 0.0, "what runs counts: {live}");
    // In the middle of the work: what runs is not counted yet, what was cancelled is.
    cluster.kill_head();
    cluster.restart_head();
    cluster.ok(&["requeue", &whole]);
    until("the second attempt runs", || {
        let shown = cluster.show(&whole);
        (shown["attempt"].as_u64(), shown["state"].as_str()) == (Some(2), Some("RUNNING"))
    });
    std::fs::write(&go, "").unwrap();
    for job in [&whole, &queued, &part] {
        cluster.end(job);
    }
    let settled = |report: &Value| report["total"]["jobs"] == 4;
    until("the history is written", || settled(&report(&cluster, &["--by", "user"])));
    let told = report(&cluster, &["--by", "project,user"]);
    // Each start repeats what it finds in the journal.
    for _ in 0..2 {
        cluster.kill_head();
        cluster.restart_head();
        let again = report(&cluster, &["--by", "project,user"]);
        assert_eq!((&again["rows"], &again["total"]), (&told["rows"], &told["total"]));
    }
    let (of_ada, of_ben) = (row(&told, Some("vision"), Some("ada")), row(&told, Some("vision"), Some("ben")));
    let of_cem = row(&told, Some("cem"), Some("cem"));
    assert_near(&of_ada["held_gpu_s"], held(&cluster, &[&whole]), "ada");
    assert_near(&of_ben["held_gpu_s"], held(&cluster, &[&queued]), "ben");
    assert_near(&of_cem["held_gpu_s"], held(&cluster, &[&part]), "cem");
    let vision = row(&told, Some("vision"), None);
    assert_near(&vision["held_gpu_s"], held(&cluster, &[&whole, &queued]), "vision");
    let all = held(&cluster, &[&whole, &queued, &part]);
    assert_near(&told["total"]["held_gpu_s"], all, "all");
    assert_near(&vision["used_part"], held(&cluster, &[&whole, &queued]) / all, "vision used");
    assert_near(&vision["entitled_part"], 0.75, "by weights 3 and 1");
    let days: f64 =
        told["days"].as_array().unwrap().iter().map(|it| it["held_gpu_s"].as_f64().unwrap()).sum();
    assert_near(&told["total"]["held_gpu_s"], days, "the days");

    assert_eq!((&of_ada["jobs"], &of_ada["starts"]), (&1.into(), &2.into()));
    assert_eq!(of_ada["attempts"], serde_json::json!({ "completed": 1, "requeued": 1 }));
    assert_eq!(of_ben["jobs_by_state"], serde_json::json!({ "CANCELLED": 1, "FAILED": 1 }));
    assert_eq!(of_ben["attempts"], serde_json::json!({ "exit_code": 1 }));
    let shown = cluster.show(&queued);
    let waited = seconds(&shown["submitted_at"], &shown["attempts"][0]["started_at"]);
    assert_near(&of_ben["wait_mean_s"], waited, "the wait of ben");
    assert_near(&of_ada["alone_exclusive_gpu_s"], held(&cluster, &[&whole]), "alone");
    assert!(of_ada["efficiency"].is_null(), "nothing reads host slots: {of_ada}");
    assert_eq!(of_ada["lost_gpu_s"], 0.0);
}

#[test]
fn users_see_themselves_and_their_project_as_a_whole() {
    let (cluster, [ada, ben, cem]) = cluster();
    for token in [&ada, &ben, &cem] {
        let job = cluster.submit(&["--token-file", token], "true");
        cluster.end(&job);
    }
    until("the history is written", || report(&cluster, &[])["total"]["jobs"] == 3);
    let names = |flags: &[&str]| -> Vec<String> {
        let told = report(&cluster, flags);
        let rows = told["rows"].as_array().unwrap().iter();
        rows.map(|row| format!("{}/{}", row["project"], row["user"]).replace('"', "")).collect()
    };
    assert_eq!(names(&["--by", "user"]), ["null/ada", "null/ben", "null/cem"]);
    assert_eq!(names(&["--by", "user", "--token-file", &ada]), ["null/ada"]);
    assert_eq!(names(&["--by", "project", "--token-file", &ada]), ["vision/null"]);
    let both = names(&["--by", "project,user", "--token-file", &ben]);
    assert_eq!(both, ["vision/null", "vision/ben"]);
    assert_eq!(names(&["--by", "project,user", "--token-file", &cem]), ["cem/null", "cem/cem"]);
    let own = report(&cluster, &["--by", "project", "--token-file", &ben]);
    assert_eq!(own["total"]["jobs"], 2, "of ada and ben together");
    let viewer = cluster.token("viewer", &["--role", "viewer", "--name", "wall"]);
    assert_eq!(names(&["--by", "project", "--token-file", &viewer]).len(), 2);
}

#[test]
fn a_report_is_a_table_lines_or_a_page() {
    let (cluster, [ada, ..]) = cluster();
    let job = cluster.submit(&["--token-file", &ada], "true");
    cluster.end(&job);
    until("the history is written", || report(&cluster, &[])["total"]["jobs"] == 1);
    let page = cluster.path("report.html");
    let table = cluster.ok(&["report", "--by", "project,user", "--last", "7d", "--html", &page]);
    assert!(table.contains("vision") && table.contains("Sharing: "), "{table}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("vision / ada") && html.contains("<svg"), "{html}");
    let csv = cluster.ok(&["report", "--output", "csv"]);
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let text = cluster.ok(&["report", "job", &job]);
    assert!(text.contains("GPU hours held") && text.contains("not measured"), "{text}");
    assert_eq!(cluster.json(&["report", "job", &job])["advice"], serde_json::json!([]), "below ten minutes");
    assert!(cluster.ok(&["report", "idle"]).starts_with("No running job"));
}

#[test]
fn bad_input_is_refused_with_the_remedy() {
    let (cluster, [ada, ..]) = cluster();
    let refused = |flags: &[&str]| cluster.run(&[&["report", "--token-file", &ada], flags].concat()).stderr;
    for (flags, told) in [
        (&["--by", "gpu"][..], "write user, project or project,user"),
        (&["--since", "2200-01-01"], "--since is in the future: give a time that has passed"),
        (&["--since", "1d", "--until", "2d"], "--since is after --until: give a --since before it"),
        (&["--last", "20000d"], "give a later --since"),
        (&["--html", "/nowhere/report.html"], "cannot write --html /nowhere/report.html"),
        (&["--last", "7"], "has no unit"),
    ] {
        let stderr = refused(flags);
        assert!(stderr.contains(told), "{flags:?}: {stderr}");
    }
    let unknown = cluster.run(&["report", "job", "999"]);
    assert!(unknown.stderr.contains("999"), "{}", unknown.stderr);
}

//! Single jobs: how they run, what they get, and how they end.

use crate::kit::*;

#[test]
fn run_passes_output_and_exit_code_through() {
    let cluster = Cluster::start(&["host:1"]);
    let ran = cluster.run(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (7, "out\n"));
    assert!(ran.stderr.contains("err\n"), "{}", ran.stderr);
}

#[test]
fn every_kind_of_end_has_its_exit_code() {
    let cluster = Cluster::start(&["host:1"]);
    std::fs::write(cluster.folder().join("text"), "no program").unwrap();
    let code = |arguments: &[&str]| cluster.run(&[&["run"], arguments].concat()).code;
    assert_eq!(code(&["--", "true"]), 0);
    assert_eq!(code(&["--", "sh", "-c", "kill -SEGV $$"]), 128 + 11);
    assert_eq!(code(&["--", "no-such-command"]), 127);
    assert_eq!(code(&["--", "./text"]), 126);
    assert_eq!(code(&["--workdir", "/no/such/folder", "--", "true"]), 125);
    assert_eq!(code(&["--time", "1s", "--", "sleep", "100"]), 124);
    assert_eq!(cluster.run(&["wait", "1-4"]).code, 139, "the first that is not 0");
}

#[test]
fn a_job_gets_its_own_environment_and_nothing_of_the_daemons() {
    let cluster = Cluster::start(&["host:1"]);
    let ran = cluster.run(&["run", "--name", "named", "--env", "MINE=yes", "--", "env"]);
    let has = |line: &str| ran.stdout.lines().any(|it| it == line);
    for line in
        ["MINE=yes", "COHABIT_JOB_ID=1", "COHABIT_JOB_NAME=named", "COHABIT_ATTEMPT=1", "COHABIT_NNODES=1"]
    {
        assert!(has(line), "{line} is not in\n{}", ran.stdout);
    }
    for name in ["COHABIT_PROGRESS=", "COHABIT_CHECKPOINT_DIR=", "COHABIT_SUBMIT_DIR=", "PATH="] {
        assert!(ran.stdout.lines().any(|it| it.starts_with(name)), "{name} is not in\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("DAEMON_SECRET"));
}

#[test]
fn jobs_run_on_the_free_slots_and_the_others_wait() {
    let cluster = Cluster::start(&["host:2"]);
    let go = cluster.path("go");
    let script = format!("until test -e {go}; do sleep 0.05; done");
    let jobs: Vec<String> = (0..3).map(|_| cluster.submit(&[], &script)).collect();
    cluster.until_state(&jobs[1], "RUNNING");
    let third = cluster.show(&jobs[2]);
    assert_eq!(
        (third["state"].as_str(), third["reason_code"].as_str()),
        (Some("PENDING"), Some("waiting_for_devices"))
    );
    let explained = cluster.ok(&["explain", &jobs[2]]);
    assert!(explained.contains("Needs 1 free GPU"), "{explained}");
    std::fs::write(&go, "").unwrap();
    for job in &jobs {
        assert_eq!(cluster.end(job)["state"], "COMPLETED");
    }
}

#[test]
fn halves_share_a_slot_and_know_of_each_other() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let script = format!("until test -e {go}; do sleep 0.05; done");
    let jobs: Vec<String> = (0..2).map(|_| cluster.submit(&["--gpus", "0.5"], &script)).collect();
    cluster.until_state(&jobs[1], "RUNNING");
    let shown = cluster.show(&jobs[0]);
    assert_eq!(shown["share"], 0.5);
    assert_eq!(shown["sharing_with"].as_array().unwrap().len(), 1, "{shown}");
    std::fs::write(&go, "").unwrap();
    cluster.end(&jobs[0]);
}

#[test]
fn progress_is_read_from_the_file_and_from_bars() {
    let cluster = Cluster::start(&["host:2"]);
    let go = cluster.path("go");
    let line = r#"{"step": 30, "total": 120, "loss": 0.5}"#;
    let file = format!("echo '{line}' >> $COHABIT_PROGRESS; until test -e {go}; do sleep 0.05; done");
    let bar = format!(
        "printf ' 25%%|##  | 30/120 [00:03<00:09, 10.0it/s]\\r'; until test -e {go}; do sleep 0.05; done"
    );
    let jobs = [cluster.submit(&[], &file), cluster.submit(&[], &bar)];
    for job in &jobs {
        let total = || cluster.show(job)["progress"]["total"].as_u64();
        until("progress is seen", || total() == Some(120));
        assert_eq!(cluster.show(job)["progress"]["step"], 30);
    }
    assert_eq!(cluster.show(&jobs[0])["progress"]["metrics"]["loss"], 0.5);
    std::fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&jobs[0])["progress"]["step"], 30, "kept after the end");
}

#[test]
fn retries_keep_the_checkpoint_directory_and_count_attempts() {
    let cluster = Cluster::start(&["host:1"]);
    let script = r#"echo $COHABIT_ATTEMPT >> "$COHABIT_CHECKPOINT_DIR/attempts"
        test $(wc -l < "$COHABIT_CHECKPOINT_DIR/attempts") -ge 2 || exit 3
        cat "$COHABIT_CHECKPOINT_DIR/attempts""#;
    let job = cluster.submit(&["--retries", "2"], script);
    cluster.completed_in(2, &job);
    assert_eq!(cluster.ok(&["logs", &job]), "1\n2\n");
}

#[test]
fn a_time_limit_warns_then_stops() {
    let cluster = Cluster::start(&["host:1"]);
    let script = "trap 'echo warned' USR1; trap 'echo stopped; exit 0' TERM; while true; do sleep 0.05; done";
    let job = cluster.submit(&["--time", "2s", "--stop-signal", "SIGUSR1@1s"], script);
    let shown = cluster.end(&job);
    assert_eq!(
        (shown["state"].as_str(), shown["reason_code"].as_str()),
        (Some("TIMEOUT"), Some("time_limit"))
    );
    assert_eq!(cluster.ok(&["logs", &job]), "warned\nstopped\n");
}

#[test]
fn a_cancelled_job_leaves_no_process_behind() {
    let cluster = Cluster::start(&["host:1"]);
    let mark = format!("cohabit-mark-{}", std::process::id());
    let started = cluster.path("started");
    let script = format!("setsid sleep 1000 & sleep 1000 & touch {started}; wait");
    let job = cluster.submit(&["--env", &format!("MARK={mark}")], &script);
    cluster.until_file("started");
    // One that has just begun shows no environment yet.
    until("all its processes run", || processes_with(&mark).len() >= 3);
    cluster.ok(&["cancel", &job]);
    let shown = cluster.end(&job);
    assert_eq!(shown["state"], "CANCELLED");
    until("all its processes are gone", || processes_with(&mark).is_empty());
}

#[test]
fn a_job_that_ignores_sigterm_outlives_its_cancellation_until_it_is_forced() {
    let cluster = Cluster::start(&["host:1"]);
    let mark = format!("cohabit-stubborn-{}", std::process::id());
    let script = format!(
        "trap 'touch {}' TERM; setsid sleep 1000 & touch {}; while true; do sleep 0.05; done",
        cluster.path("asked"),
        cluster.path("started")
    );
    let job = cluster.submit(&["--grace", "1h", "--env", &format!("MARK={mark}")], &script);
    let waiting = cluster.submit(&[], "true");
    cluster.until_file("started");
    cluster.ok(&["cancel", &job]);
    cluster.until_file("asked");
    assert_eq!(cluster.state(&job), "COMPLETING");
    assert_eq!(cluster.ok(&["cancel", "--force", &job]), format!("Cancelled job {job} by force\n"));
    let shown = cluster.end(&job);
    assert_eq!((&shown["state"], &shown["reason_code"]), (&"CANCELLED".into(), &"cancelled_by_user".into()));
    assert_eq!(shown["attempts"][0]["stopped"], "killed", "{shown}");
    let explained = cluster.ok(&["explain", &job]);
    assert!(explained.contains("It was cancelled by force after"), "{explained}");
    assert!(explained.contains("is being stopped because it was cancelled by force (by "), "{explained}");
    until("all its processes are gone", || processes_with(&mark).is_empty());
    assert_eq!(cluster.end(&waiting)["state"], "COMPLETED");
}

#[test]
fn a_forced_cancellation_sends_no_sigterm_and_ends_a_queued_job_too() {
    let cluster = Cluster::start(&["host:1"]);
    let script = format!(
        "trap 'touch {0}' USR1 TERM; touch {1}; while true; do sleep 0.05; done",
        cluster.path("asked"),
        cluster.path("started")
    );
    let flags = ["--grace", "1h", "--stop-signal", "SIGUSR1@1h"];
    let (job, queued) = (cluster.submit(&flags, &script), cluster.submit(&[], "true"));
    cluster.until_file("started");
    cluster.ok(&["cancel", "--force", &queued, &job]);
    assert_eq!(cluster.end(&queued)["attempt"], 0);
    assert_eq!(cluster.end(&job)["state"], "CANCELLED");
    assert!(!cluster.folder().join("asked").exists());
}

#[test]
fn a_job_that_ends_leaves_no_background_process_behind() {
    let cluster = Cluster::start(&["host:1"]);
    let mark = format!("cohabit-leftover-{}", std::process::id());
    let job = cluster.submit(&["--env", &format!("MARK={mark}")], "setsid sleep 1000 & exit 0");
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    until("its background process is gone", || processes_with(&mark).is_empty());
}

#[test]
fn hold_release_requeue_and_dependencies() {
    let cluster = Cluster::start(&["host:1"]);
    let first = cluster.submit(&["--hold"], "true");
    let after = cluster.submit(&["--depends-on", &first], "true");
    let never = cluster.submit(&["--depends-on", &format!("afternotok:{first}")], "true");
    assert_eq!((cluster.state(&first).as_str(), cluster.state(&after).as_str()), ("HELD", "PENDING"));
    cluster.ok(&["release", &first]);
    assert_eq!(cluster.end(&after)["state"], "COMPLETED");
    assert_eq!(cluster.end(&never)["reason_code"], "dependency_failed");
    cluster.ok(&["requeue", &first]);
    until("it runs a second time", || cluster.show(&first)["attempt"] == 2);
    assert_eq!(cluster.end(&first)["state"], "COMPLETED");
}

#[test]
fn a_key_makes_a_submission_repeatable() {
    let cluster = Cluster::start(&["host:1"]);
    let submit = || cluster.submit(&["--idempotency-key", "nightly-42"], "true");
    assert_eq!(submit(), submit());
}

#[test]
fn a_script_travels_with_its_job_and_carries_its_flags() {
    let cluster = Cluster::start(&["host:1"]);
    let script = cluster.folder().join("train.sh");
    std::fs::write(
        &script,
        "#!/bin/sh\n#COHABIT --name from-script --hold\n#SBATCH --time=00:10:00\necho first $1\n",
    )
    .unwrap();
    let job = cluster.ok(&["submit", "--output", "quiet", "train.sh", "argument"]).trim().to_owned();
    std::fs::write(&script, "#!/bin/sh\necho edited\n").unwrap();
    let shown = cluster.show(&job);
    assert_eq!((shown["name"].as_str(), shown["state"].as_str()), (Some("from-script"), Some("HELD")));
    cluster.ok(&["release", &job]);
    cluster.end(&job);
    assert_eq!(cluster.ok(&["logs", &job]), "first argument\n");
}

#[test]
fn the_last_job_and_names_are_references() {
    let cluster = Cluster::start(&["host:1"]);
    cluster.submit(&["--name", "alpha"], "true");
    cluster.submit(&["--name", "beta"], "true");
    assert_eq!(cluster.json(&["show", "last"])["name"], "beta");
    assert_eq!(cluster.json(&["show", "@~1"])["name"], "alpha");
    assert_eq!(cluster.json(&["show", "alpha"])["id"], cluster.json(&["show", "1"])["id"]);
}

#[test]
fn a_name_of_several_jobs_means_the_newest_to_commands_that_only_read() {
    let cluster = Cluster::start(&["host:1"]);
    let first = cluster.submit(&["--name", "train"], "echo first");
    let second = cluster.submit(&["--name", "train"], "echo second");
    cluster.end(&first);
    cluster.end(&second);
    let said =
        format!("2 jobs are named 'train': showing the newest, {second}; use the number for another\n");
    for (command, expected) in [("show", format!("job {second} train")), ("logs", "second\n".into())] {
        let shown = cluster.run(&[command, "train"]);
        assert_eq!((shown.code, shown.stderr.as_str()), (0, said.as_str()), "{command}");
        assert!(shown.stdout.starts_with(&expected), "{command}: {}", shown.stdout);
    }
    assert_eq!(cluster.run(&["explain", "train"]).stderr, said);
    for command in ["requeue", "cancel", "wait"] {
        let refused = cluster.run(&[command, "train"]);
        assert_eq!(refused.code, 65, "{command}: {}", refused.stderr);
        assert!(refused.stderr.contains(&format!("{first}, {second}")), "{command}: {}", refused.stderr);
    }
    // One that lives comes before all that have ended.
    let live = [(); 3].map(|()| cluster.submit(&["--name", "train", "--hold"], "true"));
    cluster.ok(&["cancel", &live[2]]);
    let shown = cluster.run(&["show", "train"]);
    assert!(shown.stdout.starts_with(&format!("job {} train HELD", live[1])), "{}", shown.stdout);
    assert!(shown.stderr.starts_with("2 jobs are named"), "{}", shown.stderr);
}

#[test]
fn a_job_is_named_after_its_script_and_its_command_is_shown_as_typed() {
    let cluster = Cluster::start(&["host:1"]);
    let typed = ["submit", "--hold", "--output", "quiet", "--", "bash", "run.sh", "a b"];
    let job = cluster.ok(&typed).trim().to_owned();
    let shown = cluster.show(&job);
    assert_eq!((shown["name"].as_str(), shown["work"].as_str()), (Some("run"), Some("bash run.sh a b")));
    assert!(cluster.ok(&["show", &job]).contains("bash run.sh 'a b'"));
    assert!(cluster.ok(&["list", "--output", "wide"]).contains("bash run.sh 'a b'"));
    let dry_run = cluster.ok(&["submit", "--dry-run", "--", "bash", "run.sh", "a b"]);
    assert!(dry_run.starts_with("Would submit bash run.sh 'a b' in "), "{dry_run}");
}

#[test]
fn a_requeued_job_waits_for_its_other_dependencies() {
    let cluster = Cluster::start(&["host:2"]);
    let go = cluster.path("go");
    let running = cluster.submit(&[], &format!("until [ -e {go} ]; do sleep 0.05; done"));
    let failing = cluster.submit(&["--hold"], "false");
    let later = cluster.submit(&["--depends-on", &format!("{failing},{running}")], "true");
    cluster.ok(&["release", &failing]);
    assert_eq!(cluster.end(&later)["reason_code"], "dependency_failed");
    cluster.ok(&["requeue", &later]);
    let shown = cluster.show(&later);
    assert_eq!(
        (&shown["state"], &shown["reason_code"]),
        (&"PENDING".into(), &"waiting_for_dependency".into())
    );
    std::fs::write(go, "").unwrap();
    assert_eq!(cluster.end(&later)["state"], "COMPLETED");
}

//! Users take turns: whoever floods the queue delays nobody else.

use crate::kit::*;

/// A cluster with two slots, both taken by jobs of ada, and more of hers waiting. Returns her jobs.
fn flooded(cluster: &Cluster, ada: &str) -> Vec<String> {
    let jobs: Vec<String> = (0..6)
        .map(|number| {
            let script =
                format!("until test -e {}; do sleep 0.05; done", cluster.path(&format!("go{number}")));
            cluster.submit(&["--token-file", ada], &script)
        })
        .collect();
    jobs[..2].iter().for_each(|job| cluster.until_state(job, "RUNNING"));
    jobs
}

fn go(cluster: &Cluster, number: usize) {
    std::fs::write(cluster.path(&format!("go{number}")), "").unwrap();
}

#[test]
fn the_job_of_another_user_is_the_next_to_start() {
    let mut cluster = Cluster::with_head(&[], &[]);
    cluster.add_worker("host:2");
    let tokens = ["ada", "ben"].map(|name| cluster.token(name, &["--role", "user", "--name", name]));
    let jobs = flooded(&cluster, &tokens[0]);
    let of_ben = cluster.submit(&["--token-file", &tokens[1]], "true");
    let shares = cluster.json(&["share"]);
    assert_eq!(shares["projects"][0]["users"][0]["user"], "ben", "{shares}");
    let explained = cluster.ok(&["explain", &jobs[5]]);
    assert!(
        explained.contains("User ada holds 2 GPUs, and the part due to them now is 1 GPU"),
        "{explained}"
    );
    assert!(explained.contains("User ben comes first"), "{explained}");
    go(&cluster, 0);
    assert_eq!(cluster.end(&of_ben)["state"], "COMPLETED");
    assert_eq!(cluster.show(&jobs[3])["state"], "PENDING");
    (1..6).for_each(|number| go(&cluster, number));
    assert_eq!(cluster.end(&jobs[5])["state"], "COMPLETED");
}

#[test]
fn a_table_of_projects_is_applied_as_a_whole_and_survives_a_restart() {
    let mut cluster = Cluster::with_head(&[], &[]);
    cluster.add_worker("host:2");
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let jobs = flooded(&cluster, &ada);
    let file = cluster.path("share.toml");
    let text = "[projects.vision]\nweight = 2\nguaranteed = 1\nusers = [\"ada\"]\n";
    std::fs::write(&file, text).unwrap();
    let told = cluster.ok(&["share", "apply", &file, "--dry-run"]);
    assert_eq!(told, "project vision: none → weight 2, guaranteed 1, users ada\n");
    assert_eq!(
        cluster.json(&["share"])["projects"][0]["project"],
        serde_json::Value::Null,
        "nothing changed"
    );
    let refused = cluster.run(&["share", "apply", &file, "--token-file", &ada]);
    assert!(refused.stderr.contains("only an admin token"), "{}", refused.stderr);
    cluster.ok(&["share", "apply", &file]);
    cluster.kill_head();
    cluster.restart_head();
    let vision = || cluster.json(&["share"])["projects"][0].clone();
    until("the worker is back", || vision()["entitled"] == 2.0);
    assert_eq!((&vision()["project"], &vision()["held"]), (&"vision".into(), &2.0.into()));
    std::fs::write(&file, text.replace("= 1", "= 3")).unwrap();
    let refused = cluster.run(&["share", "apply", &file, "--dry-run"]);
    let why = "3 GPUs are guaranteed, and the nodes that take jobs have 2";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert_eq!(vision()["guaranteed"], 1.0);
    (0..6).for_each(|number| go(&cluster, number));
    assert_eq!(cluster.end(&jobs[5])["state"], "COMPLETED");
}

#[test]
fn what_is_guaranteed_is_taken_back_and_the_stopped_job_goes_on_later() {
    let mut cluster = Cluster::with_head(&[], &[]);
    cluster.add_worker("host:2");
    let [ada, ben] = ["ada", "ben"].map(|name| cluster.token(name, &["--role", "user", "--name", name]));
    let file = cluster.path("share.toml");
    let text = "[fair-share]\nkeep-for = \"1s\"\n[projects.vision]\nguaranteed = 1\nusers = [\"ben\"]\n";
    std::fs::write(&file, text).unwrap();
    cluster.ok(&["share", "apply", &file]);
    // It keeps what it has done, and ends at once when it is asked to.
    let script = format!(
        "echo step >> $COHABIT_CHECKPOINT_DIR/log; cat $COHABIT_CHECKPOINT_DIR/log; \
         until test -e {}; do sleep 0.05; done",
        cluster.path("go")
    );
    let jobs: Vec<String> =
        (0..2).map(|_| cluster.submit(&["--token-file", &ada, "--preemptible"], &script)).collect();
    jobs.iter().for_each(|job| cluster.until_state(job, "RUNNING"));
    let of_ben = cluster.submit(&["--token-file", &ben, "--project", "vision"], "true");
    assert_eq!(cluster.end(&of_ben)["state"], "COMPLETED");
    let stopped: Vec<_> = jobs
        .iter()
        .map(|job| cluster.show(job))
        .filter(|job| job["attempts"][0]["stopped"] == "reclaimed")
        .collect();
    assert_eq!(stopped.len(), 1, "{stopped:?}");
    let stopped = stopped[0]["id"].as_str().unwrap();
    let explained = cluster.ok(&["explain", stopped]);
    assert!(explained.contains("devices are due to another user or project"), "{explained}");
    go_all(&cluster);
    for job in &jobs {
        assert_eq!(cluster.end(job)["state"], "COMPLETED");
    }
    let output = cluster.ok(&["logs", stopped]);
    assert_eq!(output.matches("step").count(), 2, "the second attempt found the checkpoint: {output}");
}

fn go_all(cluster: &Cluster) {
    std::fs::write(cluster.path("go"), "").unwrap();
}

#[test]
fn limits_of_the_table_let_jobs_wait_or_refuse_them_and_say_so() {
    let mut cluster = Cluster::with_head(&[], &[]);
    cluster.add_worker("host:3");
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let file = cluster.path("share.toml");
    let text = "[user]\nrunning-gpus = 1\nqueued-jobs = 2\n[projects.vision]\nusers = [\"ada\"]\n";
    std::fs::write(&file, text).unwrap();
    cluster.ok(&["share", "apply", &file]);
    let jobs = flooded_to(&cluster, &ada, 3);
    cluster.until_state(&jobs[0], "RUNNING");
    let waiting = cluster.show(&jobs[1]);
    assert_eq!(
        (&waiting["state"], &waiting["reason_code"]),
        (&"PENDING".into(), &"waiting_for_user_limit".into())
    );
    let run = |flags: &[&str]| {
        let arguments = [&["submit", "--token-file", &ada], flags, &["--", "true"]].concat();
        cluster.run(&arguments).stderr
    };
    let refused = run(&[]);
    assert!(refused.contains("at most 2 may wait (queued-jobs)"), "{refused}");
    let refused = run(&["--gpus", "2"]);
    assert!(refused.contains("needs 2 GPUs, and ada may hold 1 at once (running-gpus)"), "{refused}");
    let refused = run(&["--project", "speech"]);
    assert!(refused.contains("is in project vision, and there is no such project"), "{refused}");
    let refused = run(&["--qos", "low", "--no-preemptible"]);
    assert!(refused.contains("remove --no-preemptible"), "{refused}");
    std::fs::write(&file, "").unwrap();
    cluster.ok(&["share", "apply", &file]);
    jobs.iter().for_each(|job| cluster.until_state(job, "RUNNING"));
    go_all(&cluster);
    jobs.iter().for_each(|job| assert_eq!(cluster.end(job)["state"], "COMPLETED"));
}

/// So many jobs of ada that run until all may go.
fn flooded_to(cluster: &Cluster, ada: &str, count: usize) -> Vec<String> {
    let script = format!("until test -e {}; do sleep 0.05; done", cluster.path("go"));
    (0..count).map(|_| cluster.submit(&["--token-file", ada], &script)).collect()
}

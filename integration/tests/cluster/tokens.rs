//! Permissions of tokens.

use std::os::unix::fs::PermissionsExt;

use crate::kit::*;

#[test]
fn secrets_are_readable_by_their_owner_alone_and_stored_nowhere_else() {
    let cluster = Cluster::start(&[]);
    for file in ["admin.token", "worker.token", "tokens.json", "tls/ca.key", "journal.sqlite"] {
        let mode = std::fs::metadata(cluster.folder().join("head").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file} has mode {mode:o}");
    }
    let secret = cluster.read("head/admin.token").trim().rsplit('.').next().unwrap().to_owned();
    assert!(secret.len() >= 32);
    for file in ["head/tokens.json", "daemons.log"] {
        assert!(!cluster.read(file).contains(&secret), "{file} holds the secret");
    }
    assert!(!cluster.ready_line().contains(&secret));
}

#[test]
fn a_users_token_works_until_it_is_revoked() {
    let mut cluster = Cluster::start(&[]);
    // Where the tests do not run as root, the worker would serve only their own account.
    cluster.add_worker_with("host:1", &["--allow-shared-account"]);
    let bob = cluster.token("bob", &["--role", "user", "--name", "bob"]);
    let job =
        cluster.ok(&["submit", "--token-file", &bob, "--output", "quiet", "--", "true"]).trim().to_owned();
    assert_eq!(cluster.end(&job)["user"], "bob");
    let drained = cluster.run(&["worker", "drain", "--token-file", &bob, "node0"]);
    assert_eq!(drained.code, 77, "{}", drained.stderr);
    assert_eq!(cluster.run(&["token", "list", "--token-file", &bob]).code, 77);
    let running = cluster.ok(&["submit", "--token-file", &bob, "--output", "quiet", "--", "sleep", "600"]);
    cluster.until_state(running.trim(), "RUNNING");
    let revoked = cluster.ok(&["token", "revoke", "bob"]);
    assert!(revoked.contains("`cohabit cancel --user bob` ends them"), "{revoked}");
    let refused = cluster.run(&["list", "--token-file", &bob]);
    assert_eq!(refused.code, 77, "{}", refused.stderr);
    assert_eq!(cluster.state(running.trim()), "RUNNING");
    cluster.ok(&["cancel", "--user", "bob"]);
    assert_eq!(cluster.end(running.trim())["state"], "CANCELLED");
}

#[test]
fn a_token_in_a_file_is_nowhere_else() {
    let cluster = Cluster::start(&[]);
    let file = cluster.path("ada.token");
    let create = ["token", "create", "--role", "user", "--name", "ada", "--out", &file];
    let created = cluster.run(&create);
    assert_eq!((created.code, created.stderr.as_str()), (0, ""));
    assert!(created.stdout.contains(&file) && created.stdout.contains("mode 0600"), "{}", created.stdout);
    let token = std::fs::read_to_string(&file).unwrap();
    assert!(!created.stdout.contains(token.trim().rsplit('.').next().unwrap()));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    cluster.ok(&["list", "--token-file", &file]);
    let again = cluster.run(&create);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("the file exists already"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), token);
    // Where the head refuses the token, no empty file is left.
    let other = cluster.path("other.token");
    let refused = cluster.run(&["token", "create", "--role", "user", "--name", "ada", "--out", &other]);
    assert_ne!(refused.code, 0);
    assert!(!std::path::Path::new(&other).exists(), "{}", refused.stderr);
}

#[test]
fn a_user_cannot_touch_anothers_jobs() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&["--hold"], "true");
    let bob = cluster.token("bob", &["--role", "user", "--name", "bob"]);
    let refused = cluster.run(&["cancel", "--token-file", &bob, &job]);
    assert_eq!(refused.code, 77, "{}", refused.stderr);
    assert_eq!(cluster.state(&job), "HELD");
}

#[test]
fn wrong_expired_and_exposed_tokens_are_refused_with_a_message() {
    let cluster = Cluster::start(&[]);
    let expired = cluster.token("expired", &["--role", "user", "--name", "eve", "--expires", "1s"]);
    until("it expires", || cluster.run(&["list", "--token-file", &expired]).code == 77);
    let good = cluster.read("head/admin.token");
    let wrong = cluster.folder().join("wrong");
    let mut text: Vec<char> = good.trim().chars().collect();
    let last = text.last_mut().unwrap();
    *last = if *last == 'a' { 'b' } else { 'a' };
    std::fs::write(&wrong, text.iter().collect::<String>()).unwrap();
    std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(cluster.run(&["list", "--token-file", "wrong"]).code, 77);
    std::fs::set_permissions(&wrong, std::fs::Permissions::from_mode(0o644)).unwrap();
    let careless = cluster.run(&["list", "--token-file", "wrong"]);
    assert!(careless.stderr.contains("chmod 600"), "{}", careless.stderr);
}

#[test]
fn a_viewer_looks_at_jobs_and_nodes_and_changes_nothing() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&["--env", "KEY=umbrella"], "echo umbrella; sleep 1000");
    cluster.until_state(&job, "RUNNING");
    let viewer = cluster.token("wall.token", &["--role", "viewer", "--name", "wall"]);
    let as_viewer = |command: &[&str]| cluster.run(&[command, &["--token-file", &viewer]].concat());
    for command in [&["list"][..], &["show", &job], &["explain", &job], &["nodes"]] {
        let seen = as_viewer(command);
        assert!(!seen.stderr.contains("role viewer"), "{command:?}: {}", seen.stderr);
        assert!(!(seen.stdout + &seen.stderr).contains("umbrella"), "{command:?}");
    }
    assert!(as_viewer(&["list"]).stdout.contains("RUNNING") && as_viewer(&["show", &job]).code == 0);
    for command in [
        &["logs", &job][..],
        &["metrics", &job],
        &["cancel", &job],
        &["requeue", &job],
        &["hold", &job],
        &["worker", "drain", "node0"],
        &["token", "list"],
        &["token", "create", "--role", "admin"],
    ] {
        let refused = as_viewer(command);
        assert_eq!(refused.code, 77, "{command:?}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("role viewer"), "{command:?}: {}", refused.stderr);
    }
    let submitted = cluster.run(&["submit", "--token-file", &viewer, "--", "true"]);
    assert_eq!(submitted.code, 77, "{}", submitted.stderr);
    assert_eq!(cluster.state(&job), "RUNNING");
    let listed = cluster.json(&["token", "list"]);
    let is_viewer = |it: &&serde_json::Value| it["role"] == "viewer" && it["name"] == "wall";
    assert_eq!(listed["tokens"].as_array().unwrap().iter().filter(is_viewer).count(), 1, "{listed}");
    let with_account = ["token", "create", "--role", "viewer", "--account", "ada"];
    assert!(cluster.run(&with_account).stderr.contains("leave out --account"));
    cluster.ok(&["token", "revoke", "wall"]);
    assert_eq!(as_viewer(&["list"]).code, 77);
}

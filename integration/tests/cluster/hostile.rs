//! Silent connections, impostors of workers, and files that a job plants where the worker writes, harm no
//! other user.

use std::net::TcpStream;

use crate::kit::*;

#[test]
fn hundreds_of_silent_connections_do_not_block_others() {
    let cluster = Cluster::start(&["host:1"]);
    let silent: Vec<TcpStream> = (0..800).map(|_| TcpStream::connect(cluster.address()).unwrap()).collect();
    let ran = cluster.run(&["run", "--", "true"]);
    assert_eq!((ran.code, silent.len()), (0, 800), "{}", ran.stderr);
}

#[test]
fn symbolic_links_in_a_job_directory_are_not_followed() {
    let cluster = Cluster::start(&["host:1"]);
    std::fs::write(cluster.path("precious"), "thesis").unwrap();
    let plant = format!(
        "cd \"$(dirname \"$COHABIT_PROGRESS\")\" && for name in outcome.json outcome.new script; do \
         ln -sf {precious} $name; done; rm progress; ln -s {precious} progress; echo planted; \
         until [ -e log/0* ]; do sleep 0.01; done; rm -r log; ln -s / log",
        precious = cluster.path("precious")
    );
    let job = cluster.submit(&[], &plant);
    cluster.end(&job);
    assert_eq!(cluster.read("precious"), "thesis");
    // The log is a link now: it is not followed, and the next job is as good as ever.
    assert_ne!(cluster.run(&["logs", &job]).code, 0);
    assert_eq!(cluster.run(&["run", "--", "true"]).code, 0);
}

#[test]
fn control_characters_are_refused_in_names_and_not_shown_elsewhere() {
    let cluster = Cluster::start(&[]);
    let name = "bad\u{1b}]0;title\u{7}\u{1b}[2Jname";
    let refused = cluster.run(&["submit", "--hold", "--name", name, "--", "true"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("give it a name in one line") && refused.stdout.is_empty());
    let job = cluster.submit(&["--hold"], &format!("echo '{name}'"));
    let group = cluster.submit(&["--hold", "--group", name], "true");
    for arguments in [&["list", "--output", "wide"][..], &["show", &job, &group], &["explain", &job]] {
        let shown = cluster.ok(arguments);
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{arguments:?} showed {shown:?}");
    }
    assert!(!refused.stderr.contains(['\u{1b}', '\u{7}']), "{}", refused.stderr);
    assert!(cluster.ok(&["show", &job]).contains("sh -c $'echo"));
}

/// Runs a worker that only its flags tell from others, until it gives up.
fn refused_worker(cluster: &Cluster, state: &str, name: &str, token: &str) -> CommandOutput {
    let head = cluster.address();
    let start = ["worker", "start", "--join", &head, "--token-file", token, "--state", state, "--name", name];
    let refused = cluster.run(&[&start[..], &["--devices", "host:1"]].concat());
    assert_eq!(refused.code, 77, "{}", refused.stderr);
    refused
}

/// It knows the node's id, a worker token, and the number of a link that is far ahead.
#[test]
fn an_impostor_of_a_node_is_refused_and_its_jobs_go_on() {
    let cluster = Cluster::start(&["host:1"]);
    let log = cluster.attempt_log("log");
    let job = cluster.submit(&[], &log.script());
    log.until_started(1, 1);
    let node = cluster.read("worker0/node.json").replace("\"incarnation\":64", "\"incarnation\":1000");
    assert!(node.contains("1000"), "{node}");
    std::fs::create_dir(cluster.folder().join("impostor")).unwrap();
    std::fs::write(cluster.folder().join("impostor/node.json"), node).unwrap();
    let refused = refused_worker(&cluster, "impostor", "node0", "head/worker.token");
    assert!(refused.stderr.contains("belongs to a worker with another credential"), "{}", refused.stderr);
    let nodes = cluster.ok(&["nodes"]);
    assert!(nodes.contains("node0: another worker wanted to be this node 1 time"), "{nodes}");
    assert_eq!(cluster.json(&["nodes"])["refused_workers"][0]["times"], 1);
    log.go();
    assert_eq!(cluster.end(&job)["attempt"], 1);
    log.assert_whole(1, 1);
}

#[test]
fn a_token_for_a_node_lets_in_its_worker_alone() {
    let cluster = Cluster::start(&[]);
    let token = cluster.token("for-w1", &["--role", "worker", "--name", "for-w1", "--node", "w1"]);
    let other = refused_worker(&cluster, "w2", "w2", &token);
    assert!(other.stderr.contains("is for the node 'w1'"), "{}", other.stderr);
    assert!(cluster.ok(&["token", "list"]).contains("w1"));
    let user = cluster.run(&["token", "create", "--role", "user", "--node", "w1"]);
    assert_eq!(user.code, 2, "{}", user.stderr);
}

//! Silent connections, and files that a job plants where the worker writes, harm no other user.

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
fn control_characters_of_a_name_are_not_shown() {
    let cluster = Cluster::start(&[]);
    let job = cluster.submit(&["--hold", "--name", "bad\u{1b}]0;title\u{7}\u{1b}[2Jname"], "true");
    for arguments in [&["list"][..], &["show", &job], &["explain", &job]] {
        let shown = cluster.ok(arguments);
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{arguments:?} showed {shown:?}");
    }
    assert!(cluster.ok(&["list"]).contains("name"));
}

//! Refused input: exit codes and messages.

use std::io::Write;
use std::net::TcpStream;

use crate::kit::*;

#[test]
fn every_refusal_names_the_error_the_place_and_the_remedy() {
    let cluster = Cluster::start(&["host:2"]);
    let cases: &[(&[&str], i32, &str)] = &[
        (&["submit", "--gpu", "1", "--", "true"], 2, "--gpus"),
        (&["sumbit"], 2, "submit"),
        (&["submit", "--gpus", "1.5", "--", "true"], 2, "1.5"),
        (&["submit", "--gpus", "9", "--", "true"], 65, "the largest node is node0 with 2"),
        (&["submit", "--cpus", "100000", "--", "true"], 65, "cores"),
        (&["submit", "--array", "5-1", "--", "true"], 2, "5-1"),
        (&["submit", "--array", "0-3%0", "--", "true"], 2, "%"),
        (&["submit", "--time", "soon", "--", "true"], 2, "soon"),
        (&["submit", "--depends-on", "99", "--", "true"], 66, "99"),
        (&["submit", "--env", "=x", "--", "true"], 2, "="),
        (&["submit"], 2, "CMD"),
        (&["show", "99"], 66, "there is no job 99"),
        (&["show", "7-3"], 2, "7-3"),
        (&["cancel", "nobody"], 66, "nobody"),
        (&["list", "--state", "SLEEPING"], 2, "SLEEPING"),
        (&["worker", "drain", "nowhere"], 66, "node0"),
    ];
    for (arguments, code, words) in cases {
        let ran = cluster.run(arguments);
        assert_eq!(ran.code, *code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?} says: {}", ran.stderr);
    }
}

#[test]
fn errors_are_json_with_output_json() {
    let cluster = Cluster::start(&[]);
    let ran = cluster.run(&["show", "99", "--output", "json"]);
    let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((ran.code, error["error"]["code"].as_str()), (66, Some("not_found")), "{error}");
}

#[test]
fn a_missing_head_is_reported() {
    let cluster = Cluster::start(&[]);
    let ran = cluster.run(&["list", "--head", "127.0.0.1:1"]);
    assert_eq!(ran.code, 69, "{}", ran.stderr);
    assert!(ran.stderr.contains("127.0.0.1:1"), "{}", ran.stderr);
}

#[test]
fn an_unknown_key_of_the_configuration_names_the_nearest() {
    let cluster = Cluster::start(&[]);
    std::fs::write(cluster.folder().join("cohabit.toml"), "orphan-grase = \"2m\"\n").unwrap();
    let ran = cluster.run(&["list"]);
    assert_eq!(ran.code, 78, "{}", ran.stderr);
    assert!(ran.stderr.contains("orphan-grace"), "{}", ran.stderr);
}

#[test]
fn a_port_in_use_is_reported() {
    let cluster = Cluster::start(&[]);
    let ran = cluster.run(&["head", "start", "--listen", &cluster.address(), "--state", "other"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains(&cluster.address()), "{}", ran.stderr);
}

#[test]
fn two_heads_do_not_share_a_state_directory() {
    let cluster = Cluster::start(&[]);
    let ran = cluster.run(&["head", "start", "--listen", "127.0.0.1:0", "--state", "head"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("head"), "{}", ran.stderr);
}

#[test]
fn garbage_on_the_port_has_no_effect() {
    let cluster = Cluster::start(&["host:1"]);
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], &[0, 0, 0, 0]] {
        let mut stream = TcpStream::connect(cluster.address()).unwrap();
        stream.write_all(garbage).unwrap();
        std::mem::forget(stream);
    }
    assert_eq!(cluster.run(&["run", "--", "true"]).code, 0);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&[], "seq 1 100000");
    cluster.end(&job);
    let mut command = cluster.command(&["logs", &job]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

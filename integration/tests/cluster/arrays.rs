//! Arrays: members, their limit, their output, and the array as a whole.

use crate::kit::*;

#[test]
fn members_know_their_index_and_never_exceed_the_limit() {
    let cluster = Cluster::start(&["host:4"]);
    let folder = cluster.path("live");
    std::fs::create_dir(&folder).unwrap();
    let script =
        format!("mine={folder}/$COHABIT_ARRAY_INDEX; touch $mine; ls {folder} | wc -l; sleep 0.1; rm $mine");
    let array = cluster.submit(&["--array", "1-8%2"], &script);
    assert_eq!(cluster.end(&array)["state"], "COMPLETED");
    for index in 1..=8 {
        let live: u32 = cluster.ok(&["logs", &format!("{array}.{index}")]).trim().parse().unwrap();
        assert!((1..=2).contains(&live), "{live} members ran at once");
    }
}

#[test]
fn one_failing_member_fails_the_array_and_is_named() {
    let cluster = Cluster::start(&["host:2"]);
    let array = cluster.submit(&["--array", "0-3"], "test $COHABIT_ARRAY_INDEX != 2 || exit 9");
    let shown = cluster.end(&array);
    assert_eq!(shown["state"], "FAILED");
    assert_eq!(cluster.run(&["wait", &array]).code, 9);
    assert_eq!(cluster.show(&format!("{array}.2"))["exit_code"], 9);
    let explained = cluster.ok(&["explain", &array]);
    assert!(explained.contains(&format!("{array}.2")), "{explained}");
}

#[test]
fn a_large_array_is_accepted_listed_as_one_row_and_cancelled_as_one() {
    let cluster = Cluster::start(&["host:1"]);
    let array = cluster.submit(&["--array", "0-99999"], "sleep 1000");
    cluster.until_state(&format!("{array}.0"), "RUNNING");
    let listed = cluster.json(&["list"]);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 1, "{listed}");
    cluster.ok(&["cancel", &array]);
    assert_eq!(cluster.end(&array)["state"], "CANCELLED");
}

#[test]
fn members_of_a_file_find_their_entries_and_show_them() {
    let cluster = Cluster::start(&["host:2"]);
    std::fs::write(cluster.folder().join("lines"), "first line\n\nsecond\n").unwrap();
    let flags = ["submit", "--output", "quiet", "--each-line", "lines", "--at-once", "1", "--"];
    let array = cluster.ok(&[&flags[..], &["sh", "-c", "echo $COHABIT_ENTRY=$1", "sh", "{}"]].concat());
    let array = array.trim();
    assert_eq!(cluster.end(array)["array"]["members"], 2);
    assert_eq!(cluster.ok(&["logs", &format!("{array}.0")]), "first line=first line\n");
    assert_eq!(cluster.ok(&["logs", &format!("{array}.1")]), "second=second\n");

    std::fs::write(cluster.folder().join("sweep.json"), r#"[{"lr": 0.1, "net": "a"}, {"lr": 1}]"#).unwrap();
    let array = cluster.submit(&["--from-json", "sweep.json"], "echo $COHABIT_ENTRY; env | grep -c net");
    cluster.end(&array);
    assert_eq!(cluster.ok(&["logs", &format!("{array}.0")]), "{\"lr\":0.1,\"net\":\"a\"}\n1\n");
    assert_eq!(cluster.ok(&["logs", &format!("{array}.1")]), "{\"lr\":1}\n0\n", "only its own");
    let member = cluster.show(&format!("{array}.1"));
    assert_eq!((&member["entry"], &member["parameters"]["lr"]), (&r#"{"lr":1}"#.into(), &1.into()));
    let listed = cluster.ok(&["list", "--members-of", &array]);
    let heading: Vec<&str> = listed.lines().next().unwrap().split_whitespace().collect();
    assert!(heading.ends_with(&["lr", "net"]), "{listed}");
    assert!(cluster.ok(&["show", &format!("{array}.0")]).contains("lr=0.1, net=a"));

    std::fs::write(cluster.folder().join("bad.json"), "[1,\n2").unwrap();
    let refused = cluster.run(&["submit", "--from-json", "bad.json", "--", "true"]);
    assert!(refused.code == 2 && refused.stderr.contains("line 2"), "{}", refused.stderr);
}

/// The entries are part of the job's size, and the head keeps them over a restart.
#[test]
fn entries_survive_a_restart_of_the_head_and_are_bounded() {
    let mut cluster = Cluster::start(&[]);
    std::fs::write(cluster.folder().join("lines"), "one\ntwo\n").unwrap();
    let array = cluster.submit(&["--each-line", "lines"], "echo $COHABIT_ENTRY");
    cluster.kill_head();
    cluster.restart_head();
    assert_eq!(cluster.show(&format!("{array}.1"))["entry"], "two");
    cluster.add_worker("host:1");
    cluster.completed_in(1, &format!("{array}.1"));
    assert_eq!(cluster.ok(&["logs", &format!("{array}.1")]), "two\n");

    std::fs::write(cluster.folder().join("large"), format!("{}\n", "x".repeat(60_000)).repeat(80)).unwrap();
    let user = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let refused = cluster.run(&["submit", "--token-file", &user, "--each-line", "large", "--", "true"]);
    assert!(refused.code != 0 && refused.stderr.contains("max-job-size"), "{}", refused.stderr);
}

#[test]
fn a_held_array_is_shown_as_held() {
    let cluster = Cluster::start(&["host:1"]);
    let array = cluster.submit(&["--hold", "--array", "0-2"], "true");
    let listed = cluster.ok(&["list"]);
    assert!(listed.contains("HELD") && listed.contains("0/3 ended, 3 held"), "{listed}");
    let shown = cluster.show(&array);
    assert_eq!(
        (shown["state"].as_str(), shown["reason_code"].as_str()),
        (Some("HELD"), Some("held_by_user"))
    );
    let reason = shown["reason"].as_str().unwrap();
    assert!(reason.contains("3 members are on hold, to run once released"), "{reason}");
    cluster.ok(&["release", &array]);
    assert_eq!(cluster.end(&array)["state"], "COMPLETED");
}

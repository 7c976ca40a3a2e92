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

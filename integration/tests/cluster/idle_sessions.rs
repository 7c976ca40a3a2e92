//! Shells that do nothing: told, stopped for jobs that wait for their place, and left alone otherwise.

use std::time::Duration;

use serde_json::Value;

use crate::kit::{Cluster, Screen, until, until_within};
use crate::shells::shell;

/// Told after 4 s, stopped after 6 s for jobs that have waited for 30 s.
const SOON: [&str; 2] = ["--idle-stop", "6s"];

/// What the record of a job says of the time in which it does nothing.
pub(crate) fn idle(cluster: &Cluster, job: &str) -> Value {
    cluster.show(job)["attempts"][0]["idle"].clone()
}

fn idle_shell(cluster: &Cluster) -> Screen {
    let screen = shell(cluster, &[]);
    screen.until_shown("[job 1 has done nothing for ");
    screen
}

#[test]
fn a_shell_that_does_nothing_is_told_and_gives_its_place_to_a_job_that_waits() {
    let mut cluster = Cluster::with_head(&SOON, &[]);
    cluster.add_worker("host:1");
    let mut screen = idle_shell(&cluster);
    let told = idle(&cluster, "1");
    assert!(["since", "stop_from", "stop_at"].iter().all(|name| told[name].is_string()), "{told}");
    let explained = cluster.ok(&["explain", "1"]);
    assert!(explained.contains("It has done nothing for "), "{explained}");
    // The other node is taken.
    cluster.add_worker("host:1");
    let other = cluster.submit(&[], "sleep 1000");
    cluster.until_state(&other, "RUNNING");
    let waiting = cluster.submit(&[], "exit 0");
    until_within(Duration::from_secs(90), "it has the place", || cluster.state(&waiting) == "COMPLETED");
    assert!(screen.code().is_some_and(|code| code != 0), "{}", screen.text());
    screen.until_shown("CANCELLED: it was interactive and had done nothing for ");
    let ended = cluster.show("1");
    assert_eq!((&ended["state"], &ended["reason_code"]), (&"CANCELLED".into(), &"idle".into()));
    assert_eq!(
        (&ended["attempts"][0]["stopped"], &ended["attempts"][0]["idle"]),
        (&"idle".into(), &Value::Null)
    );
    assert_eq!(cluster.state(&other), "RUNNING", "it is no shell");
    let history = cluster.ok(&["explain", "1"]);
    assert!(history.contains("has done nothing for"), "{history}");
}

#[test]
fn a_shell_that_works_again_is_not_idle_and_typing_is_no_work() {
    let mut cluster = Cluster::with_head(&SOON, &[]);
    cluster.add_worker("host:1");
    let mut screen = idle_shell(&cluster);
    let since = idle(&cluster, "1")["since"].clone();
    screen.ask("echo ty''ped", "typed");
    assert_eq!(idle(&cluster, "1")["since"], since);
    screen.type_keys("while :; do :; done\r");
    until("it works", || idle(&cluster, "1").is_null());
    // The time counts from the end of the work, over a restart of the head.
    screen.type_keys("\x03");
    cluster.kill_head();
    cluster.restart_head();
    until("it does nothing again", || idle(&cluster, "1").is_object());
    assert_ne!(idle(&cluster, "1")["since"], since);
    cluster.kill_worker(0);
    cluster.restart_worker(0);
    until("it is not known what it did meanwhile", || idle(&cluster, "1").is_null());
    until("it does nothing again", || idle(&cluster, "1").is_object());
}

#[test]
fn other_jobs_and_shells_of_a_head_that_stops_none_are_left_alone() {
    let mut cluster = Cluster::with_head(&["--idle-stop", "off"], &[]);
    cluster.add_worker("host:2");
    let mut screen = shell(&cluster, &[]);
    screen.ask("echo he''re", "here");
    let document = cluster.show("1");
    assert_eq!((&document["state"], &document["attempts"][0]["idle"]), (&"RUNNING".into(), &Value::Null));
    let wrong = cluster.command(&["head", "start", "--idle-stop", "30"]).output().unwrap();
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains("--idle-stop: '30' has no unit"), "{said}");
}

//! What people are told, and that kills lose nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};

use super::receiver::{Notifier, Receiver, configure};
use crate::kit::*;

#[test]
fn users_are_told_of_the_events_that_they_ask_for() {
    let cluster = Cluster::start(&["host:2"]);
    let receiver = Receiver::start();
    let notifier = Notifier::start(&cluster, &configure(&cluster, receiver.port, ""));
    let failed = cluster.submit(&["--name", "<!here>", "--notify", "start,fail@hook"], "exit 3");
    let started = receiver.message(&failed, "start");
    assert_eq!(started["title"], format!("Job {failed} <!here> started"));
    let end = receiver.message(&failed, "fail");
    let job = &end["entries"][0]["job"];
    assert_eq!((&job["state"], &job["exit_code"]), (&"FAILED".into(), &3.into()), "{end}");
    assert_eq!(job["nodes"], serde_json::json!(["node0"]));
    // Nothing of this one was asked for, and the end of the next comes after it.
    let silent = cluster.submit(&[], "true");
    cluster.end(&silent);
    let stalled = cluster.submit(&["--notify", "stall,end", "--stall-timeout", "1s"], "sleep 600");
    let stall = receiver.message(&stalled, "stall");
    assert!(stall["text"].as_str().unwrap().contains("without a first step"), "{stall}");
    cluster.ok(&["cancel", &stalled]);
    assert_eq!(receiver.message(&stalled, "end")["title"], format!("Job {stalled} sh was cancelled"));
    let told: Vec<String> =
        receiver.messages().iter().map(|it| it["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told, ["start", "fail", "stall", "end"]);
    notifier.stop();
}

#[test]
fn arrays_are_told_of_once_and_routes_are_for_everybody() {
    let cluster = Cluster::start(&["host:2"]);
    let receiver = Receiver::start();
    let routes = "[[route]]\nevents = [\"end\"]\nto = \"hook\"\n";
    let notifier = Notifier::start(&cluster, &configure(&cluster, receiver.port, routes));
    let array = cluster.submit(&["--array", "1-3"], "test $COHABIT_ARRAY_INDEX != 2");
    let end = receiver.message(&array, "fail");
    assert_eq!(end["title"], format!("Array {array} sh failed"));
    assert!(end["text"].as_str().unwrap().contains("Members: 2 COMPLETED, 1 FAILED of 3"), "{end}");
    assert_eq!(receiver.messages().len(), 1);
    notifier.stop();
}

#[test]
fn kills_of_the_program_and_of_the_head_lose_nothing() {
    let mut cluster = Cluster::start(&["host:2"]);
    let receiver = Receiver::start();
    let config = configure(&cluster, receiver.port, "[[route]]\nevents = [\"end\"]\nto = \"hook\"\n");
    let mut notifier = Notifier::start(&cluster, &config);
    let mut jobs = Vec::new();
    let mut kills = 0;
    for round in 0..6 {
        // Every other time it dies when the receiver has the message, and before it hears so.
        if round % 2 == 0 {
            let (pid, after) = (notifier.pid(), receiver.messages().len() + 2);
            let is_dead = AtomicBool::new(false);
            receiver.on_message(move |count| {
                if count >= after && !is_dead.swap(true, Ordering::Relaxed) {
                    kill(pid, Signal::SIGKILL).unwrap();
                }
            });
        } else {
            kill(notifier.pid(), Signal::SIGKILL).unwrap();
        }
        jobs.extend((0..3).map(|_| cluster.submit(&[], "true")));
        let last = jobs.last().unwrap().clone();
        cluster.end(&last);
        notifier.killed();
        kills += 1;
        if round == 3 {
            cluster.kill_head();
            cluster.restart_head();
        }
        notifier = Notifier::start(&cluster, &config);
    }
    jobs.iter().for_each(|job| drop(receiver.message(job, "end")));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for message in receiver.messages() {
        *counts.entry(message["key"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(counts.len(), jobs.len(), "{counts:?}");
    let repeated: usize = counts.values().map(|count| count - 1).sum();
    assert!(repeated <= kills, "{repeated} repeated by {kills} kills: {counts:?}");
    notifier.stop();
}

#[test]
fn after_a_backup_was_restored_new_messages_are_told_and_old_ones_not_again() {
    let mut cluster = Cluster::start(&["host:1"]);
    let receiver = Receiver::start();
    let config = configure(&cluster, receiver.port, "[[route]]\nevents = [\"end\"]\nto = \"hook\"\n");
    let notifier = Notifier::start(&cluster, &config);
    let told = |cluster: &Cluster| {
        let job = cluster.submit(&[], "true");
        cluster.end(&job);
        receiver.message(&job, "end")
    };
    told(&cluster);
    let backup = cluster.path("head.tar");
    cluster.ok(&["head", "backup", &backup]);
    // As many as the restored head tells: they have the same numbers if these do not jump.
    (0..3).for_each(|_| drop(told(&cluster)));
    cluster.lose_and_restore(&backup);
    cluster.until_node("node0", "UP");
    (0..3).for_each(|_| drop(told(&cluster)));
    let of_jobs = receiver.messages().into_iter().filter(|it| it["event"] == "end");
    let keys: Vec<String> = of_jobs.map(|it| it["key"].as_str().unwrap().to_owned()).collect();
    assert_eq!(keys.len(), 7, "{keys:?}");
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 7, "{keys:?}");
    notifier.stop();
}

#[test]
fn a_configuration_is_checked_and_a_channel_tested() {
    let cluster = Cluster::start(&[]);
    let receiver = Receiver::start();
    let config = configure(&cluster, receiver.port, "");
    let checked = cluster.ok(&["notify", "--config", &config, "--check"]);
    assert_eq!(checked, "1 channels, 0 routes\nhook: webhook, 0 routes, the default channel\n");
    cluster.ok(&["notify", "--config", &config, "--test", "hook"]);
    assert_eq!(receiver.messages()[0]["event"], "test");
    let unknown = cluster.run(&["notify", "--config", &config, "--test", "hok"]);
    assert!(unknown.code == 78 && unknown.stderr.contains("did you mean 'hook'?"), "{}", unknown.stderr);
    let exposed = cluster.path("hook.key");
    std::process::Command::new("chmod").args(["644", &exposed]).status().unwrap();
    let refused = cluster.run(&["notify", "--config", &config, "--check"]);
    assert!(refused.code == 78 && refused.stderr.contains("chmod 600"), "{}", refused.stderr);
    let bad = cluster.run(&["submit", "--notify", "finish", "--", "true"]);
    assert!(bad.code == 2 && bad.stderr.contains("is not an event of a job"), "{}", bad.stderr);
}

//! Objects: values that processes of an application pass by reference.

use std::fs;

use serde_json::Value;

use super::launch::{Launch, kill_process, program};
use crate::kit::*;

const MIB: u64 = 1 << 20;

impl Cluster {
    fn launch_objects(&self, arguments: &[&str]) -> Launch {
        self.launch_program(&program("objects"), arguments)
    }

    /// What the store of the application has, and how many objects.
    fn stored(&self) -> (u64, u64, usize) {
        let seen = self.json(&["objects", "objects"]);
        let figure = |key: &str| seen["stores"][0][key].as_u64().unwrap();
        (figure("memory"), figure("disk"), seen["objects"].as_array().map_or(0, Vec::len))
    }
}

#[test]
fn an_object_outlives_its_maker() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch_objects(&["outlives", &go]);
    assert_eq!(launch.line(), "right: 1048576");
    let maker = launch.line().strip_prefix("maker ").unwrap().parse().unwrap();
    kill_process(maker);
    until("the maker is gone", || !cluster.program_processes().contains(&maker));
    fs::write(&go, "").unwrap();
    assert_eq!(launch.line(), "right: 1048576");
    assert_eq!(launch.end().code, 0);
    until("all processes are gone", || cluster.program_processes().is_empty());
}

/// 16 objects of nearly 16 MiB with memory for 64: a quarter stays there, the others lie on disk.
#[test]
fn a_full_store_spills() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch_objects(&["spills", &go]);
    assert_eq!(launch.line(), "all are there");
    let (memory, disk, objects) = cluster.stored();
    // Three or four of them, each a little less than 16 MiB.
    assert!((47 * MIB..=64 * MIB).contains(&memory), "{memory} bytes in memory");
    assert!(memory + disk >= 255 * MIB, "{memory} bytes in memory and {disk} on disk");
    assert_eq!(objects, 16);
    // The coordinator hears of the last one when its main has printed that it is there.
    let holders = |it: &Value| it["holders"].as_u64();
    until("each is held once", || {
        let seen = cluster.json(&["objects", "objects"]);
        seen["objects"].as_array().unwrap().iter().all(|it| holders(it) == Some(1))
    });
    fs::write(&go, "").unwrap();
    assert_eq!(launch.line(), "right: 16");
    assert_eq!(launch.line(), "dropped");
    until("nothing is stored", || cluster.stored() == (0, 0, 0));
    fs::write(format!("{go}.end"), "").unwrap();
    assert_eq!(launch.end().code, 0);
}

#[test]
fn tasks_wait_for_the_values_of_others() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch_objects(&["depends", &go]);
    assert_eq!(launch.line(), "started");
    let waiting = || {
        let seen = cluster.json(&["tasks", "objects"]);
        let waits = |task: &&Value| task["reason"].as_str().is_some_and(|it| it.contains("not known yet"));
        seen["tasks"].as_array().unwrap().iter().filter(waits).count()
    };
    until("eleven tasks wait for values", || waiting() == 11);
    fs::write(&go, "").unwrap();
    assert_eq!(launch.line(), "sum: 120");
    assert_eq!(launch.end().code, 0);
}

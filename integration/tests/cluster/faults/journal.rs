//! A head whose journal was damaged while it was down: it says what is damaged and what is behind, and the
//! command that it names makes it start.

use std::fs;
use std::process::Stdio;
use std::sync::Mutex;

use crate::kit::{Cluster, until};

const LOG_HEADER: usize = 32;
/// Of a frame's header and its page.
const FRAME: usize = 24 + 4_096;

/// Flips a byte in a page that a later commit wrote again, near the middle of the write-ahead log.
fn damage(log: &str) {
    let mut bytes = fs::read(log).unwrap();
    let pages: Vec<Vec<u8>> = bytes[LOG_HEADER..].chunks(FRAME).map(|frame| frame[..4].to_vec()).collect();
    let is_again = |index: &usize| pages[index + 1..pages.len() - 4].contains(&pages[*index]);
    let index = (pages.len() / 2..pages.len() - 4).find(is_again).unwrap();
    bytes[LOG_HEADER + index * FRAME + 2_000] ^= 1;
    fs::write(log, bytes).unwrap();
}

#[test]
fn damage_inside_the_write_ahead_log_is_reported_and_salvaged() {
    let mut cluster = Cluster::start(&["host:2"]);
    let done = cluster.submit(&[], "true");
    cluster.end(&done);
    let jobs: Vec<String> = (0..12).map(|_| cluster.submit(&["--hold"], "true")).collect();
    cluster.kill_head();
    damage(&cluster.path("head/journal.sqlite-wal"));
    let (state, address) = (cluster.path("head"), cluster.address());
    let list = Mutex::new(cluster.command(&["list", "--head", &address]));
    let mut shown = cluster.command(&["head", "recover", "--state", &state]);
    let mut salvage = cluster.command(&["head", "recover", "--salvage", "--state", &state]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until("clients are told", || {
                let output = list.lock().unwrap().stdin(Stdio::null()).output().unwrap();
                let text = String::from_utf8(output.stderr).unwrap();
                output.status.code() == Some(69)
                    && ["recovery mode", "journal.sqlite-wal", "Behind the damage", "recover --salvage"]
                        .iter()
                        .all(|part| text.contains(part))
            });
            let shown = shown.output().unwrap();
            let text = String::from_utf8(shown.stderr).unwrap();
            assert!(!shown.status.success() && text.contains("of them submissions of jobs"), "{text}");
            let output = salvage.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        });
        cluster.restart_head();
    });
    let log = cluster.read("daemons.log");
    assert!(log.contains("is damaged at byte"), "{log}");
    assert_eq!(cluster.state(&done), "COMPLETED");
    for job in &jobs {
        assert_eq!(cluster.state(job), "HELD");
    }
    assert!(fs::exists(cluster.path("head/journal.sqlite-wal.damaged")).unwrap());
    let after = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&after)["state"], "COMPLETED");
}

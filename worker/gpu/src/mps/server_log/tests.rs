//! Logs as several drivers write them, and how they are followed.

use std::fs::OpenOptions;
use std::io::Write;

use tempfile::{TempDir, tempdir};

use super::*;

/// A memory fault of 4711 beside 4712, as drivers from 580 on log it.
const TODAY: &str = "\
[2026-11-21 18:01:10.100 Server  3210] Client {PID: 4712, Context ID: 0} connected
[2026-11-21 18:02:00.000 Server  3210] Server is handling a fatal GPU error.
[2026-11-21 18:02:00.000 Server  3210] All clients belonging to error trigging process 4711 will be torn down
[2026-11-21 18:02:00.000 Server  3210] The following client process have a sticky error set:
[2026-11-21 18:02:00.000 Server  3210] Client {PID: 4711, Context ID: 0} \
    on the error-trigging process 4711 to be torn down
[2026-11-21 18:02:00.000 Server  3210] Client {PID: 4712, Context ID: 0} on device 0 to be torn down
[2026-11-21 18:02:00.000 Server  3210] The following devices will be reset:
[2026-11-21 18:02:00.000 Server  3210] 0
";

const RECOVERY: &str = "\
[2026-11-21 18:02:00.300 Server  3210] Client {PID: 4712, Context ID: 0} exiting. \
    Number of active client contexts is 0.
[2026-11-21 18:02:00.301 Server  3210] Destroy server context on device 0 (NVIDIA H200)
[2026-11-21 18:02:01.500 Server  3210] Creating server context on device 0 (NVIDIA H200)
";

/// A memory fault of 4711 beside 4712, as drivers before 580 log it.
const BEFORE_580: &str = "\
[2024-07-01 09:00:00.000 Server   950] Client process 4711 encountered a fatal GPU error.
[2024-07-01 09:00:00.001 Server   950] Server is handling a fatal GPU error.
[2024-07-01 09:00:00.001 Server   950] Status of client {4711, 1} is INACTIVE
[2024-07-01 09:00:00.001 Server   950] Status of client {4712, 1} is INACTIVE
[2024-07-01 09:00:00.001 Server   950] The following clients have a sticky error set:
[2024-07-01 09:00:00.001 Server   950] 4711
[2024-07-01 09:00:00.001 Server   950] 4712
";

/// A fault other than a memory fault, as drivers up to about 545 log it.
const VOLTA: &str = "\
[2022-04-28 15:15:07.849 Other 11661] Volta MPS: Server is handling a fatal GPU error.
[2022-04-28 15:15:07.849 Other 11661] Volta MPS: status of client {4711, 1} is INACTIVE
[2022-04-28 15:15:07.849 Other 11661] Volta MPS: status of client {4712, 1} is INACTIVE
[2022-04-28 15:15:07.849 Other 11661] Volta MPS: The following clients have a sticky error set:
[2022-04-28 15:15:07.849 Other 11661] Volta MPS: 4711
[2022-04-28 15:15:07.849 Other 11661] Volta MPS: 4712
";

fn faults(log: &str) -> Vec<ServerFault> {
    let mut tracker = FaultTracker::default();
    log.lines().for_each(|line| tracker.read_line(line));
    tracker.take_faults()
}

fn culprits(log: &str) -> Vec<Vec<i32>> {
    faults(log).into_iter().map(|fault| fault.culprits).collect()
}

#[test]
fn the_process_that_triggered_the_error_is_the_only_culprit() {
    assert_eq!(culprits(TODAY), [[4711]]);
    assert_eq!(culprits(BEFORE_580), [[4711]]);
    let detail = &faults(TODAY)[0].detail;
    assert!(detail.starts_with("Server is handling a fatal GPU error.; All clients belonging"), "{detail}");
}

#[test]
fn clients_with_a_sticky_error_are_not_culprits() {
    let nobody: Vec<i32> = Vec::new();
    assert_eq!(culprits(VOLTA), [nobody]);
}

#[test]
fn where_several_clients_encountered_the_error_there_is_no_culprit() {
    let everybody = "\
[2025-09-01 09:00:00.000 Server   950] Server is handling a fatal GPU error.
[2025-09-01 09:00:00.001 Server   950] Client {PID: 4711, Context: 0} encountered a fatal GPU error.
[2025-09-01 09:00:00.001 Server   950] Client {PID: 4712, Context: 0} encountered a fatal GPU error.
";
    let nobody: Vec<i32> = Vec::new();
    assert_eq!(culprits(everybody), [nobody]);
    let alone = everybody.lines().take(2).collect::<Vec<_>>().join("\n");
    assert_eq!(culprits(&alone), [[4711]]);
}

#[test]
fn a_log_without_faults_reports_none() {
    assert_eq!(faults(RECOVERY), []);
    assert_eq!(faults("no line of NVIDIA's\n\n[broken\n"), []);
}

#[test]
fn successive_faults_are_reported_separately() {
    let again = TODAY.replace("trigging process 4711", "trigging process 4712");
    assert_eq!(culprits(&[TODAY, RECOVERY, &again].concat()), [[4711], [4712]]);
    let nobody: Vec<i32> = Vec::new();
    assert_eq!(culprits(&[TODAY, VOLTA].concat()), [vec![4711], nobody], "without a line about recovery");
}

#[test]
fn late_lines_about_a_fault_do_not_report_it_again() {
    let mut tracker = FaultTracker::default();
    BEFORE_580.lines().for_each(|line| tracker.read_line(line));
    assert_eq!(tracker.take_faults().len(), 1);
    tracker.read_line(
        "[2024-07-01 09:00:03.000 Server   950] Client process 4712 encountered a fatal GPU error.",
    );
    assert_eq!(tracker.take_faults(), []);
    RECOVERY.lines().for_each(|line| tracker.read_line(line));
    TODAY.lines().for_each(|line| tracker.read_line(line));
    assert_eq!(tracker.take_faults().len(), 1);
}

fn log() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("server.log");
    (folder, path)
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn each_fault_is_reported_once_as_the_log_grows() {
    let (_folder, path) = log();
    let mut log = ServerLog::new(path.clone());
    assert_eq!(log.faults(), [], "there is no log yet");
    append(&path, TODAY);
    assert_eq!(log.faults().len(), 1);
    assert_eq!(log.faults(), []);
    append(&path, RECOVERY);
    append(&path, BEFORE_580);
    assert_eq!(log.faults().len(), 1);
}

#[test]
fn an_incomplete_line_is_read_later() {
    let (_folder, path) = log();
    let mut log = ServerLog::new(path.clone());
    let (head, tail) = BEFORE_580.split_at(60);
    append(&path, head);
    assert_eq!(log.faults(), []);
    append(&path, tail);
    assert_eq!(log.faults()[0].culprits, [4711]);
}

#[test]
fn a_log_that_is_emptied_or_replaced_is_followed() {
    let (_folder, path) = log();
    append(&path, RECOVERY);
    append(&path, TODAY);
    let mut log = ServerLog::at_end(path.clone());
    assert_eq!(log.faults(), [], "earlier faults are skipped");
    std::fs::write(&path, BEFORE_580).unwrap();
    assert_eq!(log.faults().len(), 1);
    std::fs::rename(&path, path.with_extension("old")).unwrap();
    append(&path, RECOVERY);
    append(&path, &TODAY.repeat(10));
    assert_eq!(log.faults().len(), 10);
}

#[test]
fn a_later_reader_gets_faults_after_the_given_position() {
    let (_folder, path) = log();
    append(&path, RECOVERY);
    let mut log = ServerLog::new(path.clone());
    assert_eq!(log.faults(), []);
    let read = log.position();
    append(&path, &[TODAY, RECOVERY].concat());
    let mut next = ServerLog::after(path.clone(), read);
    assert_eq!(next.faults()[0].culprits, [4711]);
    assert_eq!(ServerLog::after(path.clone(), next.position()).faults(), []);
    std::fs::write(&path, BEFORE_580).unwrap();
    assert_eq!(ServerLog::after(path, next.position()).faults().len(), 1, "the log was emptied meanwhile");
}

#[test]
fn the_last_message_of_a_log_comes_without_its_time() {
    let (_folder, path) = log();
    assert_eq!(last_message(&path), None);
    let text = "\
[2026-11-21 17:54:22.382 Control 28961] Starting new server 28961 for user 0
[2026-11-21 17:54:22.383 Control 28948] Server 28961 exited with status 1
[2026-11-21 17:54:22.383 Control 28948] UI closed
";
    append(&path, text);
    assert_eq!(last_message(&path).as_deref(), Some("UI closed"));
    assert_eq!(last_exit(&path).as_deref(), Some("Server 28961 exited with status 1"));
}

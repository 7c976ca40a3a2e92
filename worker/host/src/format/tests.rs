//! The golden files of every version, read by this one.
//!
//! A golden file is never changed. When the format changes, add a directory for the new version.

use std::fs;
use std::path::{Path, PathBuf};

use cohabit_gpu::DeviceRange;
use cohabit_types::{DeviceId, MetricValue, Outcome, Progress, Role, Signal, Span, StopReason, Time};
use cohabit_worker_core::{GpuAccess, Lease, RankExit, SignalTarget, StopStep, Stopping};
use serde_json::Value;

use super::*;
use crate::process::ProcessIdentity;

fn golden(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/v{version}"))
}

fn files(version: u32, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(golden(version)).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let named = entries.map(|path| (name(&path), path)).filter(|(name, _)| name.starts_with(prefix));
    let files: Vec<_> = named.map(|(name, path)| (name, fs::read(path).unwrap())).collect();
    assert!(!files.is_empty(), "there are golden files {prefix}* of version {version}");
    files
}

fn lines(version: u32, name: &str) -> Vec<String> {
    fs::read_to_string(golden(version).join(name)).unwrap().lines().map(str::to_owned).collect()
}

fn same_in_both_versions<T: VersionedFile + PartialEq + std::fmt::Debug>(prefix: &str) {
    for (name, first) in files(1, prefix) {
        let second = fs::read(golden(2).join(&name)).unwrap();
        let record = T::decode(&second).unwrap();
        assert_eq!(T::decode(&first).unwrap(), record, "{name}");
        assert_eq!(record.encode(), second, "{name} is what this version writes");
    }
}

#[test]
fn files_of_all_versions_have_the_same_content() {
    same_in_both_versions::<StartRecord>("start-");
    same_in_both_versions::<OutcomeRecord>("outcome-");
    same_in_both_versions::<ExecutorRecord>("executor");
}

#[test]
fn the_watchdog_of_an_executor_is_read_back() {
    let identity = |pid| ProcessIdentity::new(pid, 2, "x".into());
    let record = ExecutorRecord { process: identity(1), watchdog: Some(identity(3)) };
    assert_eq!(ExecutorRecord::decode(&record.encode()).unwrap(), record);
    assert_eq!(record.root(), &identity(3));
}

#[test]
fn a_start_file_says_when_the_head_could_last_be_reached() {
    let mut record = StartRecord::decode(&fs::read(golden(2).join("start-plain.json")).unwrap()).unwrap();
    assert_eq!(record.leased_at, None, "files of release 0.1 do not say it");
    record.leased_at = Some(Time::from_micros(7));
    assert_eq!(StartRecord::decode(&record.encode()).unwrap(), record);
}

#[test]
fn closed_devices_are_read_back() {
    let mut record = StartRecord::decode(&fs::read(golden(2).join("start-mps.json")).unwrap()).unwrap();
    let closed = vec![DeviceRange { major: 195, first: 1, last: 253 }];
    record.cgroup.as_mut().unwrap().closed_devices = closed;
    assert_eq!(StartRecord::decode(&record.encode()).unwrap(), record);
}

#[test]
fn a_start_in_a_copy_of_the_code_is_read_back() {
    let mut record = StartRecord::decode(&fs::read(golden(2).join("start-plain.json")).unwrap()).unwrap();
    assert_eq!(record.workdir(), Path::new(&record.rank.spec.workdir));
    record.workdir = Some("/var/lib/cohabit/code/7/1/files/src".into());
    assert_eq!(record.workdir(), Path::new("/var/lib/cohabit/code/7/1/files/src"));
    assert_eq!(StartRecord::decode(&record.encode()).unwrap(), record);
}

/// What a program of version 1 does not know it ignores; so a downgrade keeps the running jobs.
#[test]
fn version_2_adds_only_new_fields_to_complete_files_of_version_1() {
    for (name, first) in
        files(1, "start-").into_iter().chain(files(1, "outcome-")).chain(files(1, "executor"))
    {
        let mut second: Value = serde_json::from_slice(&fs::read(golden(2).join(&name)).unwrap()).unwrap();
        assert_eq!(second.as_object_mut().unwrap().remove("version"), Some(2.into()), "{name}");
        if let Some(spec) = second.pointer_mut("/rank/spec") {
            let added = spec.as_object_mut().unwrap();
            for name in ["preemptible", "requeue_on_timeout", "interactive"] {
                assert_eq!(added.remove(name), Some(false.into()), "{name}");
            }
            for name in ["code", "stall", "partition", "project", "sweep"] {
                assert_eq!(added.remove(name), Some(Value::Null), "{name}");
            }
            assert!(added.remove("output").is_some(), "{name}");
            assert!(added.remove("entries").is_some(), "{name}");
            assert!(added.remove("notify").is_some(), "{name}");
            assert_eq!(added.remove("input"), Some("empty".into()), "{name}");
            assert_eq!(added.remove("qos"), Some("normal".into()), "{name}");
            let demand = spec.pointer_mut("/demand").and_then(Value::as_object_mut).unwrap();
            assert_eq!(demand.remove("up_to"), Some(Value::Null), "{name}");
        }
        if let Some(cgroup) = second.pointer_mut("/cgroup").and_then(Value::as_object_mut) {
            assert!(cgroup.remove("closed_devices").is_some_and(|closed| closed.is_array()), "{name}");
        }
        if name != "start-earliest.json" {
            assert_eq!(second, serde_json::from_slice::<Value>(&first).unwrap(), "{name}");
        }
    }
}

#[test]
fn fields_that_the_first_daemons_did_not_write_have_defaults() {
    let text = fs::read(golden(1).join("start-earliest.json")).unwrap();
    let start = StartRecord::decode(&text).unwrap();
    assert_eq!((start.lease_term, start.booted_at, start.account, start.cgroup), (None, None, None, None));
    assert_eq!(start.rank.devices, [DeviceId("host-0".into())]);
    assert_eq!((start.rank.role, start.rank.access), (Role::User, GpuAccess::None));
    assert_eq!((start.rank.account.as_str(), start.rank.rendezvous_port), ("", None));
}

#[test]
fn a_start_file_says_whether_its_job_is_preemptible() {
    let plain = fs::read_to_string(golden(2).join("start-plain.json")).unwrap();
    let text = plain.replace(r#""preemptible":false"#, r#""preemptible":true"#);
    let start = StartRecord::decode(text.as_bytes()).unwrap();
    assert!(start.rank.spec.preemptible);
    assert_eq!(String::from_utf8(start.encode()).unwrap(), text);
}

#[test]
fn messages_are_the_same_in_both_versions() {
    let (events, commands) = (lines(1, "events.jsonl"), lines(1, "commands.jsonl"));
    assert_eq!((&events, &commands), (&lines(2, "events.jsonl"), &lines(2, "commands.jsonl")));
    let encoded = |text: Vec<u8>| String::from_utf8(text).unwrap();
    for line in events {
        assert_eq!(encoded(ExecutorEvent::decode(&line).unwrap().encode()), format!("{line}\n"));
    }
    for line in commands {
        assert_eq!(encoded(ExecutorCommand::decode(&line).unwrap().encode()), format!("{line}\n"));
    }
}

#[test]
fn messages_keep_their_meaning() {
    let event = |line| ExecutorEvent::decode(line).unwrap();
    let at = Time::EPOCH + Span::from_secs(1_800_000_000);
    assert_eq!(event(r#"{"started":1800000000000000}"#), ExecutorEvent::Started(at));
    assert_eq!(event(r#"{"process":4712}"#), ExecutorEvent::Process(4712));
    let command = |line| ExecutorCommand::decode(line).unwrap();
    let kill = ExecutorCommand::Signal(Signal::KILL, SignalTarget::Everything);
    assert_eq!(command(r#"{"signal":[9,"everything"]}"#), kill);
    assert_eq!(command(r#"{"lease":"orphaned"}"#), ExecutorCommand::Lease(Lease::Orphaned));
    let dated = ExecutorCommand::LeaseAt(Lease::Held, at);
    assert_eq!(command(r#"{"lease_at":["held",1800000000000000]}"#), dated);
    assert_eq!(dated.encode(), b"{\"lease_at\":[\"held\",1800000000000000]}\n");
}

/// To a daemon or an executor of version 1 the job was cancelled, so a downgrade keeps the outcome.
#[test]
fn a_rank_that_was_killed_was_cancelled_to_readers_of_version_1() {
    let why = StopReason::Killed;
    let stopping = Stopping { why, next: StopStep::Kill, due_at: Time::from_micros(1) };
    let line = ExecutorCommand::Stopping(stopping).encode();
    let text = r#"{"stopping":{"why":"cancelled","next":"kill","due_at":1,"killed":true}}"#;
    assert_eq!(String::from_utf8(line).unwrap(), format!("{text}\n"));
    assert_eq!(ExecutorCommand::decode(text).unwrap(), ExecutorCommand::Stopping(stopping));
    let ending =
        RankExit { outcome: Outcome::Signalled(Signal::KILL), stopped: Some(why), at: Time::from_micros(1) };
    let record = OutcomeRecord { rank: None, ending, started_at: None, progress: None };
    let file: Value = serde_json::from_slice(&record.encode()).unwrap();
    assert_eq!((&file["ending"]["stopped"], &file["ending"]["killed"]), (&"cancelled".into(), &true.into()));
    assert_eq!(OutcomeRecord::decode(&record.encode()).unwrap(), record);
}

/// To a daemon of version 1 the job was requeued, and reported only the metrics that are finite numbers.
#[test]
fn a_stall_and_metrics_that_are_no_numbers_can_be_read_by_version_1() {
    let metrics = [("loss", f64::NAN), ("lr", 0.5)];
    let metrics = metrics.map(|(name, value)| (name.to_owned(), MetricValue(value))).into();
    let progress = Progress { step: 3, metrics, ..Progress::default() };
    let ending = RankExit {
        outcome: Outcome::Signalled(Signal::TERM),
        stopped: Some(StopReason::Stalled),
        at: Time::from_micros(1),
    };
    let record = OutcomeRecord { rank: None, ending, started_at: None, progress: Some(progress) };
    let file: Value = serde_json::from_slice(&record.encode()).unwrap();
    assert_eq!((&file["ending"]["stopped"], &file["ending"]["stalled"]), (&"requeued".into(), &true.into()));
    assert_eq!(file["progress"]["metrics"], serde_json::json!({ "lr": 0.5 }));
    assert_eq!(file["progress"]["non_finite"], serde_json::json!({ "loss": "NaN" }));
    assert_eq!(OutcomeRecord::decode(&record.encode()).unwrap(), record);
}

#[test]
fn unknown_fields_are_ignored_and_unknown_messages_are_errors_that_can_be_passed_over() {
    let text = br#"{"version":2,"pid":1,"started_at_ticks":2,"boot":"x","cookie":[1,2]}"#;
    let process = ProcessIdentity::new(1, 2, "x".into());
    let record = ExecutorRecord { process, watchdog: None };
    assert_eq!(ExecutorRecord::decode(text).unwrap(), record);
    let line = r#"{"stopping":{"why":"cancelled","next":"kill","due_at":1,"by":"ada"}}"#;
    assert!(ExecutorEvent::decode(line).is_ok());
    assert!(matches!(ExecutorEvent::decode(r#"{"paused":true}"#), Err(FormatError::Json(_))));
}

#[test]
fn a_file_of_a_later_version_is_refused_with_both_versions_whatever_else_it_holds() {
    let error = StartRecord::decode(br#"{"version":3,"ranks":[]}"#).unwrap_err();
    assert!(matches!(error, FormatError::Newer(_)));
    let text = error.to_string();
    assert!(
        text.contains("version 3") && text.contains("reads 1 to 2") && text.contains("downgrade"),
        "{text}"
    );
}

#[test]
fn version_0_does_not_exist() {
    let golden = fs::read_to_string(golden(2).join("executor.json")).unwrap();
    assert!(ExecutorRecord::decode(golden.as_bytes()).is_ok());
    let zero = golden.replace("\"version\":2", "\"version\":0");
    let error = ExecutorRecord::decode(zero.as_bytes()).unwrap_err();
    assert!(matches!(&error, FormatError::Json(why) if why.to_string().contains("`0`")), "{error}");
}

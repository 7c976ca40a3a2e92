//! Golden files: what earlier versions wrote is read for ever, and what this version writes never changes.
//!
//! `tests/golden` holds one line of JSON for each value in `samples`. The lines of a released format are
//! never edited. `cargo nextest run -p cohabit-journal --run-ignored all write_the_golden_files` writes
//! those of a new format.

pub(crate) mod archived_array;
mod config_samples;
mod feed_samples;
mod record_samples;
mod reservation_samples;
mod samples;
mod script_samples;
mod share_samples;
mod time_samples;

use std::collections::BTreeSet;

use cohabit_scheduler_core::Event;
use cohabit_types::{
    Bandwidth, Bytes, ClientRequestId, Demand, DeviceId, FeedEvent, Incarnation, JobEvent, JobId, JobRecord,
    NodeId, PlanRequestId, Report, Request, Share, Signal, Slowdown, Span, Time, WorkerKey,
};
use serde_json::{json, to_value};
use serde_with::de::DeserializeAsWrap;
use serde_with::ser::SerializeAsWrap;
use uuid::Uuid;

use crate::stored::StoredJobEvent;
use crate::{
    FORMAT, JournalDecodeError, decode_event, decode_feed_event, decode_record, encode_event,
    encode_feed_event, encode_record, is_journaled,
};

const EVENTS_1: &str = include_str!("../tests/golden/events-1.jsonl");
const EVENTS_5: &str = include_str!("../tests/golden/events-5.jsonl");
const EVENTS_6: &str = include_str!("../tests/golden/events-6.jsonl");
const JOB_EVENTS: &str = include_str!("../tests/golden/job-events.jsonl");
const FEED: &str = include_str!("../tests/golden/feed.jsonl");
const RECORDS: &str = include_str!("../tests/golden/records.jsonl");

fn encode_job_event(event: &JobEvent) -> String {
    serde_json::to_string(&SerializeAsWrap::<JobEvent, StoredJobEvent>::new(event)).unwrap()
}

fn decode_job_event(text: &str) -> JobEvent {
    serde_json::from_str::<DeserializeAsWrap<JobEvent, StoredJobEvent>>(text).unwrap().into_inner()
}
fn assert_lines<T: std::fmt::Debug + PartialEq>(
    golden: &str,
    samples: &[T],
    encode: impl Fn(&T) -> String,
    decode: impl Fn(&str) -> T,
) {
    assert_eq!(golden.lines().count(), samples.len());
    for (line, sample) in golden.lines().zip(samples) {
        assert_eq!(encode(sample), line);
        assert_eq!(decode(line), *sample, "{line}");
    }
}

#[test]
fn events_of_format_5_are_read() {
    let samples = samples::events_of_format_5();
    assert_eq!(EVENTS_5.lines().count(), samples.len());
    for (line, sample) in EVENTS_5.lines().zip(samples) {
        assert_eq!(decode_event(5, line).unwrap(), sample, "{line}");
    }
}

/// They lack the fields that came later.
#[test]
fn events_of_format_1_are_read() {
    let events: Vec<Event> = EVENTS_1.lines().map(|line| decode_event(1, line).unwrap()).collect();
    let Event::Client(_, _, Request::Submit(submit)) = &events[2] else { panic!("{:?}", events[2]) };
    let expected = Demand { memory: submit.spec.demand.memory, ..Demand::default() };
    assert_eq!(submit.spec.demand, expected, "what it does not say has its default");
    for event in events {
        assert_eq!(decode_event(FORMAT, &encode_event(&event).unwrap()).unwrap(), event);
    }
}

#[test]
fn events_of_format_6_are_read_and_written() {
    let encode = |event: &Event| encode_event(event).unwrap();
    assert_lines(EVENTS_6, &samples::events(), encode, |line| decode_event(6, line).unwrap());
}

#[test]
fn the_events_of_a_job_are_read_and_written() {
    assert_lines(JOB_EVENTS, &samples::job_events(), encode_job_event, decode_job_event);
}

#[test]
fn records_of_the_history_are_read_and_written() {
    let encode = |record: &JobRecord| encode_record(record).unwrap();
    assert_lines(RECORDS, &record_samples::records(), encode, |line| decode_record(line).unwrap());
}

#[test]
fn events_of_the_feed_are_read_and_written() {
    let encode = |event: &FeedEvent| encode_feed_event(event).unwrap();
    assert_lines(FEED, &feed_samples::feed_events(), encode, |line| decode_feed_event(line).unwrap());
}

#[test]
fn events_that_never_enter_a_journal_are_refused() {
    let worker = WorkerKey { node: NodeId(Uuid::nil()), incarnation: Incarnation(1) };
    for report in [Report::Progress(vec![]), Report::Telemetry(vec![]), Report::ColocationSamples(vec![])] {
        let event = Event::Report(worker, report);
        assert!(!is_journaled(&event) && encode_event(&event).is_err());
    }
    assert!(samples::events().iter().all(is_journaled));
}

#[test]
fn an_unknown_format_is_named() {
    for format in [0, 7] {
        let refusal = decode_event(format, "\"timer_fired\"").unwrap_err();
        assert!(matches!(refusal, JournalDecodeError::UnknownFormat { found } if found == format));
        let expected = format!("it has format {format}, but this version reads formats 1 to 6");
        assert_eq!(refusal.to_string(), expected);
    }
    assert!(decode_event(6, "\"Alarm\"").is_err(), "each format has its own names");
}

#[test]
fn ids_times_and_amounts_keep_their_text() {
    let job = JobId::member(12, 5);
    let texts = [
        (to_value(JobId::new(12)), json!("12")),
        (to_value(job), json!("12.5")),
        (to_value(job.attempt(2)), json!("12.5#2")),
        (to_value(job.attempt(2).rank(3)), json!("12.5#2/3")),
        (to_value(NodeId(Uuid::from_u128(7))), json!("00000000-0000-0000-0000-000000000007")),
        (to_value(Incarnation(3)), json!(3)),
        (to_value(ClientRequestId(3)), json!(3)),
        (to_value(PlanRequestId(3)), json!(3)),
        (to_value(DeviceId("GPU-1".into())), json!("GPU-1")),
        (to_value(Time::from_micros(5)), json!(5)),
        (to_value(Span::from_secs(1)), json!(1_000_000)),
        (to_value(Bytes(1 << 40)), json!(1_099_511_627_776_u64)),
        (to_value(Share::WHOLE), json!(1_000)),
        (to_value(Slowdown(1_300)), json!(1_300)),
        (to_value(Bandwidth(25_000_000_000)), json!(25_000_000_000_u64)),
        (to_value(Signal::KILL), json!(9)),
    ];
    for (value, text) in texts {
        assert_eq!(value.unwrap(), text);
    }
}

/// Serde would otherwise store such a field as the in-memory type describes itself.
#[test]
fn every_field_of_a_stored_shape_has_a_shape_or_is_an_id_a_time_or_an_amount() {
    let source =
        |path: &str| std::fs::read_to_string(format!("{}/src/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let files = [
        "config",
        "device",
        "feed",
        "job",
        "job_event",
        "model",
        "node",
        "notify",
        "outcome",
        "record",
        "report",
        "request",
    ];
    let files = files.map(|name| format!("stored/{name}.rs")).into_iter().chain(["snapshot/v6.rs".into()]);
    let sources: Vec<(String, String)> = files.map(|path| (source(&path), path)).collect();
    let shaped: BTreeSet<&str> = sources
        .iter()
        .flat_map(|(source, _)| source.lines())
        .filter_map(|line| line.split_once(" => ")?.1.trim_end_matches(',').rsplit("::").next())
        .collect();
    assert!(shaped.len() > 60 && shaped.contains("JobSpec"), "{shaped:?}");
    for (source, path) in &sources {
        let (_, items) = source.split_once("#[derive(").unwrap();
        let items = items.split("shape_of!").next().unwrap_or_default();
        let mut before = "";
        for line in items.lines() {
            let is_item = line.contains("remote = ") || line.contains(" struct ") || line.contains(" enum ");
            let field = line.rsplit([']', '(', '{', ':']).next().unwrap_or_default();
            let names_a_shaped_type =
                field.split(|c: char| !c.is_alphanumeric()).any(|token| shaped.contains(token));
            let described =
                [before, line].iter().any(|it| it.contains("with = ") || it.contains("serde(skip)"));
            assert!(is_item || !names_a_shaped_type || described, "{path}: {line}");
            before = line;
        }
    }
}

#[test]
#[ignore = "writes the golden files of a new format; run it by hand"]
fn write_the_golden_files() {
    let lines: Vec<String> =
        samples::events().iter().map(|event| encode_event(event).unwrap() + "\n").collect();
    let path = format!("{}/tests/golden/events-{FORMAT}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, lines.concat()).unwrap();
    let feed = feed_samples::feed_events();
    let lines: Vec<String> = feed.iter().map(|event| encode_feed_event(event).unwrap() + "\n").collect();
    let path = format!("{}/tests/golden/feed.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, lines.concat()).unwrap();
}

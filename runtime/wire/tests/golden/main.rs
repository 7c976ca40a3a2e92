//! The bytes of every message of both protocols, held against those that were recorded.
//!
//! `golden/v4.txt` was recorded with the last release of protocol 4, and never changes. `golden/v5.txt` is
//! recorded anew while protocol 5 is not released (`cargo test -p cohabit-wire -- --ignored record`); from
//! its release on it never changes either. A type that must change has its earlier form frozen in the module
//! of the earlier version first.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod sampler;

use std::fmt::Write as _;
use std::path::PathBuf;

use cohabit_wire::codec::{decode, encode};
use cohabit_wire::hello::{Hello, HelloAnswer};
use cohabit_wire::{
    ClientServiceRequest, ClientServiceResponse, HeadServiceRequest, HeadServiceResponse,
    WorkerServiceRequest, WorkerServiceResponse, v4,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One line for each sample: the message and its bytes.
fn record<T: Serialize + DeserializeOwned>(message: &str, lines: &mut String) {
    for sample in sampler::samples::<T>() {
        let bytes = encode(&sample).unwrap();
        let again: T = decode(&bytes).unwrap();
        assert_eq!(encode(&again).unwrap(), bytes, "{message} is decoded as it was encoded");
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(lines, "{message} {hex}").unwrap();
    }
}

fn lines_of_v4() -> String {
    let mut lines = String::new();
    record::<v4::hello::Hello>("hello", &mut lines);
    record::<v4::hello::HelloAnswer>("hello-answer", &mut lines);
    record::<v4::HeadServiceRequest>("head-service-request", &mut lines);
    record::<v4::HeadServiceResponse>("head-service-response", &mut lines);
    record::<v4::WorkerServiceRequest>("worker-service-request", &mut lines);
    record::<v4::WorkerServiceResponse>("worker-service-response", &mut lines);
    record::<v4::ClientServiceRequest>("client-service-request", &mut lines);
    record::<v4::ClientServiceResponse>("client-service-response", &mut lines);
    lines
}

fn lines_of_v5() -> String {
    let mut lines = String::new();
    record::<Hello>("hello", &mut lines);
    record::<HelloAnswer>("hello-answer", &mut lines);
    record::<HeadServiceRequest>("head-service-request", &mut lines);
    record::<HeadServiceResponse>("head-service-response", &mut lines);
    record::<WorkerServiceRequest>("worker-service-request", &mut lines);
    record::<WorkerServiceResponse>("worker-service-response", &mut lines);
    record::<ClientServiceRequest>("client-service-request", &mut lines);
    record::<ClientServiceResponse>("client-service-response", &mut lines);
    lines
}

fn file(version: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("golden/v{version}.txt"))
}

fn check(version: u32, lines: &str) {
    let recorded = std::fs::read_to_string(file(version)).unwrap();
    for (number, (recorded, now)) in recorded.lines().zip(lines.lines()).enumerate() {
        assert!(
            recorded == now,
            "the bytes of protocol {version} have changed: golden/v{version}.txt, line {}\n\
             was {recorded}\n\
             is  {now}\n\
             Freeze the earlier form of the type that changed in the module of that version: see decision 022.",
            number + 1
        );
    }
    assert_eq!(recorded.lines().count(), lines.lines().count(), "messages of protocol {version}");
}

#[test]
fn messages_of_protocol_4_have_the_bytes_that_its_last_release_gave_them() {
    check(4, &lines_of_v4());
}

#[test]
fn messages_of_protocol_5_have_the_recorded_bytes() {
    check(5, &lines_of_v5());
}

#[test]
#[ignore = "it records the bytes of the current protocol anew"]
fn record_protocol_5() {
    std::fs::write(file(5), lines_of_v5()).unwrap();
}

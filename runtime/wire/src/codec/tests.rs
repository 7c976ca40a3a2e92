//! The layout of what travels, byte by byte, and what decoding makes of nonsense.

use cohabit_types::{
    JobId, LogRecord, LogStream, Order, Outcome, Principal, Report, Role, Signal, Span, StopReason, Time,
};
use proptest::prelude::*;

use super::*;
use crate::hello::{ConnectionPurpose, Hello, HelloAnswer};
use crate::message::{Message, NoMessage};
use crate::{Fingerprint, HelloAccepted, HelloRefusalCode, Secret};

/// The bytes of a message, two digits each.
fn hex(message: &impl Serialize) -> String {
    encode(message).unwrap().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A change here, or in the next two, is a change of the protocol: raise its version.
#[test]
fn the_bytes_of_proto_messages_are_those_of_this_protocol_version() {
    let rank = JobId::member(300, 5).attempt(2).rank(1);
    assert_eq!(hex(&rank), "fb2c0101050201");
    assert_eq!(hex(&Order::Stop { attempt: rank.attempt, why: StopReason::TimeLimit }), "01fb2c0101050201");
    let ended = Report::Ended {
        rank,
        outcome: Outcome::Signalled(Signal::KILL),
        stopped: None,
        progress: None,
        at: Time::from_micros(70_000),
        usage: Vec::new(),
    };
    assert_eq!(hex(&ended), "01fb2c010105020101120000fc7011010000");
    let printed = LogRecord { stream: LogStream::Stderr, at: Time::from_micros(1), bytes: b"hi\n".to_vec() };
    assert_eq!(hex(&printed), "01010368690a");
}

#[test]
fn the_bytes_of_link_messages_are_those_of_this_protocol_version() {
    let trace = tarpc::trace::Context::default;
    let call: Message<JobId, NoMessage> =
        Message::Call { id: 1, time_left: Span::from_micros(7), trace: trace(), request: JobId::new(12) };
    assert_eq!(hex(&call), "0001070000000000000000000000000000000000010c00");
    let cancel: Message<NoMessage, NoMessage> = Message::Cancel { id: 1, trace: trace() };
    assert_eq!(hex(&cancel), "0101000000000000000000000000000000000001");
    let answer: Message<NoMessage, u8> = Message::Answer { id: 1, answer: Ok(9) };
    assert_eq!(hex(&answer), "02010009");
    let failure: Message<NoMessage, u8> = Message::Answer { id: 1, answer: Err("no".into()) };
    assert_eq!(hex(&failure), "020101026e6f");
}

#[test]
fn the_bytes_of_the_hello_are_those_of_this_protocol_version() {
    let hello = Hello { secret: Secret::new([0x77; 32]), purpose: ConnectionPurpose::Client };
    assert_eq!(hex(&hello), "77".repeat(32) + "00");
    let by = Principal::new("ada", Role::User);
    let cluster: Fingerprint = "5a".repeat(32).parse().unwrap();
    let accepted = HelloAnswer::Accepted(HelloAccepted { cluster, by, build: "1".into() });
    assert_eq!(hex(&accepted), format!("00{cluster}0361646101000131"));
    let refused = HelloAnswer::Refused { code: HelloRefusalCode::ExpiredToken, message: "no".into() };
    assert_eq!(hex(&refused), "0101026e6f");
}

#[test]
fn a_message_too_long_for_a_frame_is_refused_before_it_is_written() {
    assert!(matches!(encode(&vec![0u8; MAX_FRAME]), Err(CodecError::TooLong { limit: MAX_FRAME })));
    assert!(encode(&vec![0u8; MAX_FRAME - 5]).is_ok());
}

#[test]
fn a_length_beyond_the_input_is_refused_without_allocation() {
    let claims_2_to_the_63 = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0x80];
    assert!(matches!(decode::<Vec<u64>>(&claims_2_to_the_63), Err(CodecError::Undecodable(_))));
    assert!(matches!(decode::<String>(&claims_2_to_the_63), Err(CodecError::Undecodable(_))));
}

#[test]
fn bytes_after_a_message_are_refused() {
    assert!(matches!(decode::<u8>(&[1, 2]), Err(CodecError::Undecodable(_))));
}

#[test]
fn a_message_within_another_limit_is_appended_and_comes_back() {
    let mut bytes = vec![9];
    encode_into("four", 5, &mut bytes).unwrap();
    assert_eq!(bytes, [9, 4, b'f', b'o', b'u', b'r']);
    assert_eq!(decode_within::<String>(&bytes[1..], 100).unwrap(), "four");
    assert!(matches!(encode_into("fours", 5, &mut bytes), Err(CodecError::TooLong { limit: 5 })));
    let beyond = decode_within::<String>(&bytes[1..6], 4);
    assert!(matches!(beyond, Err(CodecError::TooLong { limit: 4 })), "{beyond:?}");
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _decoded: Result<Message<Vec<Report>, Vec<Order>>, _> = decode(&bytes);
        let _decoded: Result<HelloAnswer, _> = decode(&bytes);
    }

    #[test]
    fn encoded_ids_decode_to_themselves((number, index) in any::<(u64, Option<u32>)>(), text in ".*") {
        let sent = (JobId { number, index }, text);
        let received: (JobId, String) = decode(&encode(&sent).unwrap()).unwrap();
        prop_assert_eq!(received, sent);
    }
}

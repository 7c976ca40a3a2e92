//! Whoever sends nonsense, or nothing, harms nobody else.

use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::bytes::Bytes as Frame;

use super::refusals::secured;
use cohabit_wire::codec::{self, MAX_FRAME};
use cohabit_wire::hello::{ConnectionPurpose, Hello, HelloAnswer, decode_answer, encode_hello};
use cohabit_wire::message::{Message, NoMessage};
use cohabit_wire::{ClientServiceRequest, ClientServiceResponse, ProtocolVersion};

use super::*;
use crate::frames::{self, Frames};
use crate::token::draw_secret;
use crate::{HelloRefusalCode, tls};

type RawLink = Frames<tokio_rustls::client::TlsStream<TcpStream>>;

/// Sends these bytes in the clear; the head hangs up.
async fn send_in_the_clear(head: &TestHead, bytes: &[u8]) {
    let mut stream = TcpStream::connect(&head.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut rest = Vec::new();
    let _reset_or_end = in_time(stream.read_to_end(&mut rest)).await;
}

/// A client that has said hello and may say anything now.
async fn raw_client(head: &TestHead, name: &str) -> RawLink {
    let token = head.endpoint(name, Role::User, None).token;
    let mut frames = frames::frames(secured(&head.address, token.fingerprint()).await, MAX_FRAME);
    let hello = Hello { secret: token.secret(), purpose: ConnectionPurpose::Client };
    frames.send(encode_hello(ProtocolVersion::CURRENT, &hello).unwrap()).await.unwrap();
    let answer = in_time(frames.next()).await.unwrap().unwrap();
    assert!(matches!(decode_answer(&answer, ProtocolVersion::CURRENT), Ok(HelloAnswer::Accepted(_))));
    frames
}

#[tokio::test]
async fn garbage_and_plain_http_end_the_connection() {
    let head = TestHead::start().await;
    send_in_the_clear(&head, b"GET / HTTP/1.1\r\nHost: head\r\n\r\n").await;
    send_in_the_clear(&head, &[0; 4_096]).await;
    send_in_the_clear(&head, &[0xff; 65_536]).await;
    head.assert_serves("ada").await;
}

#[tokio::test]
async fn a_frame_of_enormous_length_ends_the_connection_before_and_after_the_hello() {
    let mut head = TestHead::start().await;
    let token = head.endpoint("ada", Role::User, None).token;
    let mut stream = secured(&head.address, token.fingerprint()).await;
    stream.write_all(&u32::MAX.to_be_bytes()).await.unwrap();
    let mut rest = Vec::new();
    let _reset_or_end = in_time(stream.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");

    let mut frames = raw_client(&head, "bea").await;
    frames.get_mut().write_all(&u32::MAX.to_be_bytes()).await.unwrap();
    assert!(matches!(head.next_end().await, LinkEnd::Broken(reason) if reason.contains("frame size")));
    head.assert_serves("cleo").await;
}

#[tokio::test]
async fn silence_ends_the_connection_after_the_limit() {
    let limits =
        ListenerLimits { handshake_timeout: Duration::from_millis(300), ..ListenerLimits::default() };
    let head = TestHead::start_within(limits).await;
    let token = head.endpoint("ada", Role::User, None).token;
    let mut half = secured(&head.address, token.fingerprint()).await;
    half.write_all(&[0, 0, 1, 0, b'C', b'O', b'H']).await.unwrap();
    let mut mute = TcpStream::connect(&head.address).await.unwrap();
    let mut rest = Vec::new();
    let _reset_or_end = in_time(half.read_to_end(&mut rest)).await;
    let _reset_or_end = in_time(mute.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn silent_connections_do_not_delay_others() {
    let for_ever = PATIENCE * 100;
    let head = TestHead::start_within(ListenerLimits {
        handshake_timeout: for_ever,
        max_handshakes: 4,
        ..ListenerLimits::default()
    })
    .await;
    let mut silent = Vec::new();
    for number in 0..20 {
        for _ in 0..5 {
            silent.push(TcpStream::connect(&head.address).await.unwrap());
        }
        head.assert_serves(&format!("ada-{number}")).await;
    }
    // All have made room but the last few.
    for stream in &mut silent[..90] {
        let _reset_or_end = in_time(stream.read_to_end(&mut Vec::new())).await;
    }
    assert!(!has_ended(silent.last().unwrap()));
}

#[tokio::test]
async fn one_token_uses_no_more_than_its_part_of_the_slots() {
    let mut head =
        TestHead::start_within(ListenerLimits { connections_per_token: 2, ..ListenerLimits::default() })
            .await;
    let ada = head.endpoint("ada", Role::User, None);
    let (first, _) = connect_client(&ada).await.unwrap();
    let (_second, _) = connect_client(&ada).await.unwrap();
    let error = connect_client(&ada).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("the token 'ada' has 2 connections"), "{error}");
    head.assert_serves("bea").await;
    assert_eq!(head.next_end().await, LinkEnd::ClosedByPeer);
    drop(first);
    assert_eq!(head.next_end().await, LinkEnd::ClosedByPeer);
    connect_client(&ada).await.unwrap();
}

/// So little patience that a test need not wait.
fn hasty() -> ListenerLimits {
    ListenerLimits { message: Duration::from_millis(300), ..ListenerLimits::default() }
}

#[tokio::test]
async fn half_a_message_ends_its_link_after_the_limit_and_silence_between_messages_does_not() {
    let mut head = TestHead::start_within(hasty()).await;
    let idle = head.client("ada").await;
    for half in [&[0][..], &[0, 0, 0, 9], &[0, 0, 0, 9, 1, 2]] {
        let mut frames = raw_client(&head, &format!("bea-{}", half.len())).await;
        frames.get_mut().write_all(half).await.unwrap();
        assert!(matches!(head.next_end().await, LinkEnd::Broken(reason) if reason.contains("the rest of")));
    }
    idle.ping(patient()).await.unwrap();
}

#[tokio::test]
async fn a_client_that_reads_no_answers_is_disconnected_and_others_are_served() {
    let mut head = TestHead::start_within(hasty()).await;
    let bystander = head.client("ada").await;
    let mut frames = raw_client(&head, "bea").await;
    for id in 0..64 {
        let request = ClientServiceRequest::Explain { job: JobId::new(2) };
        let time_left = PATIENCE.into();
        let call: Message<_, NoMessage> = Message::Call { id, time_left, trace: Default::default(), request };
        // Near the end nobody may be there any more.
        let _sent = frames.send(codec::encode(&call).unwrap()).await;
        bystander.ping(patient()).await.unwrap();
    }
    assert!(matches!(head.next_end().await, LinkEnd::Broken(reason) if reason.contains("was not accepted")));
    bystander.ping(patient()).await.unwrap();
}

#[tokio::test]
async fn before_authentication_only_the_secret_is_read() {
    let head = TestHead::start().await;
    let token = head.endpoint("ada", Role::User, None).token;
    let mut stream = secured(&head.address, token.fingerprint()).await;
    let hello = {
        let hello = Hello { secret: draw_secret().unwrap(), purpose: ConnectionPurpose::Client };
        encode_hello(ProtocolVersion::CURRENT, &hello).unwrap()
    };
    // It says that a megabyte follows, and sends the secret alone.
    stream.write_all(&(1u32 << 20).to_be_bytes()).await.unwrap();
    stream.write_all(&[&hello[..], &[0; 300]].concat()).await.unwrap();
    let mut frames = frames::frames(stream, MAX_FRAME);
    let answer = in_time(frames.next()).await.unwrap().unwrap();
    let HelloAnswer::Refused { code, .. } = decode_answer(&answer, ProtocolVersion::CURRENT).unwrap() else {
        panic!("refused")
    };
    assert_eq!(code, HelloRefusalCode::UnknownToken);
}

/// Whether the other side has closed this connection by now.
fn has_ended(stream: &TcpStream) -> bool {
    let peeked = SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]);
    !peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[tokio::test]
async fn a_client_whose_hello_is_long_is_refused() {
    let head = TestHead::start().await;
    let token = head.endpoint("ada", Role::User, None).token;
    let mut frames = frames::frames(secured(&head.address, token.fingerprint()).await, MAX_FRAME);
    frames.send(Frame::from(vec![7; (1 << 20) + 1])).await.unwrap();
    assert!(!matches!(in_time(frames.next()).await, Some(Ok(_))));
    head.assert_serves("bea").await;
}

#[tokio::test]
async fn a_hostile_deadline_is_capped_and_the_link_stays() {
    let head = TestHead::start().await;
    let mut frames = raw_client(&head, "ada").await;
    for (id, time_left) in [(1, Span::from_micros(u64::MAX)), (2, Span::from_secs(100 * 365 * 86_400))] {
        let request = ClientServiceRequest::Explain { job: JobId::new(1) };
        let call: Message<_, NoMessage> = Message::Call { id, time_left, trace: Default::default(), request };
        frames.send(codec::encode(&call).unwrap()).await.unwrap();
        let answer = in_time(frames.next()).await.unwrap().unwrap();
        let message: Message<NoMessage, ClientServiceResponse> = codec::decode(&answer).unwrap();
        let Message::Answer { id: answered, answer: Ok(ClientServiceResponse::Explain(Ok(answer))) } =
            message
        else {
            panic!("{message:?}")
        };
        let sentences = answer.sentences;
        let left: u64 = sentences[1].parse().unwrap();
        assert!(answered == id && left <= 86_400, "{answered} {left}");
    }
}

#[tokio::test]
async fn a_frame_that_is_no_message_ends_its_own_link_only() {
    let mut head = TestHead::start().await;
    let bystander = head.client("ada").await;
    let mut frames = raw_client(&head, "bea").await;
    frames.send(Frame::from(vec![0xff; 1_000])).await.unwrap();
    assert!(matches!(head.next_end().await, LinkEnd::Broken(reason) if reason.contains("not a message")));
    bystander.ping(patient()).await.unwrap();
}

#[tokio::test]
async fn an_answer_to_nothing_ends_its_own_link_only() {
    let mut head = TestHead::start().await;
    let mut frames = raw_client(&head, "ada").await;
    let answer: Message<NoMessage, ()> = Message::Answer { id: 1, answer: Ok(()) };
    frames.send(codec::encode(&answer).unwrap()).await.unwrap();
    assert!(matches!(head.next_end().await, LinkEnd::Broken(_)));
    head.assert_serves("bea").await;
}

#[tokio::test]
async fn tls_of_an_earlier_version_ends_the_connection() {
    let head = TestHead::start().await;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let stream = TcpStream::connect(&head.address).await.unwrap();
    let shaken = TlsConnector::from(Arc::new(config)).connect(tls::head_name(), stream).await;
    let error = shaken.map(drop).unwrap_err().to_string();
    assert!(error.contains("ProtocolVersion"), "{error}");
    head.assert_serves("ada").await;
}

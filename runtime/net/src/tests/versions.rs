//! Peers of the protocol before: a head serves them, and a worker joins a head that speaks only that.

use std::sync::Arc;

use cohabit_types::Principal;
use cohabit_wire::codec;
use cohabit_wire::hello::{
    ConnectionPurpose, Hello, HelloAnswer, decode_answer, decode_hello, encode_answer, encode_hello,
};
use cohabit_wire::message::{Message, NoMessage};
use cohabit_wire::v4::messages::{Answer, Query, Reply, Request, TokenRequest};
use cohabit_wire::{ProtocolVersion, v4};
use futures::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::answers::some_orders;
use super::refusals::secured;
use super::*;
use crate::frames::{self, Frames};
use crate::{HelloAccepted, HelloRefusalCode, LinkError, MAX_FRAME, tls};

type ClientFrames = Frames<tokio_rustls::client::TlsStream<tokio::net::TcpStream>>;

/// A client of protocol 4 that was let in.
async fn client_of_v4(head: &TestHead) -> ClientFrames {
    let token = head.endpoint("ada", Role::User, None).token;
    let mut frames = frames::frames(secured(&head.address, token.fingerprint()).await, MAX_FRAME);
    let hello = Hello { secret: token.secret(), purpose: ConnectionPurpose::Client };
    frames.send(encode_hello(ProtocolVersion::V4, &hello).unwrap()).await.unwrap();
    let answer = in_time(frames.next()).await.unwrap().unwrap();
    let Ok(HelloAnswer::Accepted(accepted)) = decode_answer(&answer, ProtocolVersion::V4) else {
        panic!("{answer:?}")
    };
    assert_eq!(accepted.by, Principal::new("ada", Role::User));
    frames
}

async fn call_v4(frames: &mut ClientFrames, request: v4::ClientServiceRequest) -> v4::ClientServiceResponse {
    let time_left = Span::from_secs(30);
    let call: Message<_, NoMessage> = Message::Call { id: 9, time_left, trace: Default::default(), request };
    frames.send(codec::encode(&call).unwrap()).await.unwrap();
    let frame = in_time(frames.next()).await.unwrap().unwrap();
    let Message::Answer { id: 9, answer } = codec::decode::<Message<NoMessage, _>>(&frame).unwrap() else {
        panic!("{frame:?}")
    };
    answer.unwrap()
}

#[tokio::test]
async fn a_client_of_the_protocol_before_is_answered_in_its_own_messages() {
    let head = TestHead::start().await;
    let mut client = client_of_v4(&head).await;
    let drain = v4::ClientServiceRequest::Request { request: Request::Drain("node-a".into()) };
    let v4::ClientServiceResponse::Request(Ok(Reply::Node(node))) = call_v4(&mut client, drain).await else {
        panic!("a reply")
    };
    assert_eq!(node, "node-a");
    let explain = v4::ClientServiceRequest::Query { query: Query::Explain(JobId::new(1)) };
    let v4::ClientServiceResponse::Query(Ok(Answer::Explained { sentences, .. })) =
        call_v4(&mut client, explain).await
    else {
        panic!("an explanation")
    };
    assert_eq!(sentences[0], "ada");
    let list = v4::ClientServiceRequest::Token { request: TokenRequest::List };
    let v4::ClientServiceResponse::Token(Err(refusal)) = call_v4(&mut client, list).await else {
        panic!("a refusal")
    };
    assert_eq!(refusal.code, v4::refusal::RefusalCode::NotAllowed);
    head.assert_serves("bea").await;
}

#[tokio::test]
async fn a_refusal_is_sent_in_the_version_of_the_hello() {
    let head = TestHead::start().await;
    let token = head.endpoint("node-a", Role::Worker, None).token;
    for version in [ProtocolVersion::V4, ProtocolVersion::V5] {
        let mut frames = frames::frames(secured(&head.address, token.fingerprint()).await, MAX_FRAME);
        let hello = Hello { secret: token.secret(), purpose: ConnectionPurpose::Client };
        frames.send(encode_hello(version, &hello).unwrap()).await.unwrap();
        let answer = in_time(frames.next()).await.unwrap().unwrap();
        let Ok(HelloAnswer::Refused { code, .. }) = decode_answer(&answer, version) else {
            panic!("refused")
        };
        assert_eq!(code, HelloRefusalCode::WrongRole);
    }
}

#[test]
fn only_a_worker_of_this_protocol_sends_its_credential() {
    let token = "5".repeat(64);
    let purpose = ConnectionPurpose::Worker(Box::new(hello()));
    let sent = Hello { secret: Secret::from_hex(&token).unwrap(), purpose };
    let credential = |version| {
        let (_, decoded) = decode_hello(&encode_hello(version, &sent).unwrap()).unwrap();
        let ConnectionPurpose::Worker(worker) = decoded.purpose else { panic!("it is a worker's") };
        assert_eq!((worker.key, worker.inventory), (hello().key, hello().inventory));
        worker.credential.map(|credential| credential.expose_hex())
    };
    assert_eq!(credential(ProtocolVersion::V4), None);
    assert_eq!(credential(ProtocolVersion::V5), hello().credential.map(|it| it.expose_hex()));
}

#[tokio::test]
async fn a_worker_of_the_protocol_before_gets_its_orders_in_that_protocol() {
    let mut head = TestHead::start().await;
    let token = head.endpoint("node-a", Role::Worker, None).token;
    let mut worker = frames::frames(secured(&head.address, token.fingerprint()).await, MAX_FRAME);
    let purpose = ConnectionPurpose::Worker(Box::new(hello()));
    let hello = Hello { secret: token.secret(), purpose };
    worker.send(encode_hello(ProtocolVersion::V4, &hello).unwrap()).await.unwrap();
    let answer = in_time(worker.next()).await.unwrap().unwrap();
    assert!(matches!(decode_answer(&answer, ProtocolVersion::V4), Ok(HelloAnswer::Accepted(_))));
    let session = in_time(head.workers.recv()).await.unwrap();
    let orders = some_orders();
    let (calls, sent) = (session.orders.clone(), orders.clone());
    let ordered = tokio::spawn(async move { calls.order(patient(), sent).await });
    let frame = in_time(worker.next()).await.unwrap().unwrap();
    let call = codec::decode::<Message<v4::WorkerServiceRequest, NoMessage>>(&frame).unwrap();
    let Message::Call { id, request: v4::WorkerServiceRequest::Order { orders: received }, .. } = call else {
        panic!("{call:?}")
    };
    assert_eq!(received, orders.into_iter().filter_map(v4::Order::of).collect::<Vec<_>>());
    let answer = Ok(v4::WorkerServiceResponse::Order(()));
    let answer: Message<NoMessage, _> = Message::Answer { id, answer };
    worker.send(codec::encode(&answer).unwrap()).await.unwrap();
    in_time(ordered).await.unwrap().unwrap();
}

/// A head that speaks protocol 4 alone: it refuses every other hello, and sends a worker these orders.
async fn head_of_v4(orders: Vec<v4::Order>) -> (String, crate::Token) {
    let folder = tempfile::tempdir().unwrap();
    let identity = HeadIdentity::open_or_create(folder.path()).unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let config = tls::server_config(identity.chain(), identity.key()).unwrap();
    let (acceptor, cluster) = (TlsAcceptor::from(Arc::new(config)), identity.fingerprint());
    tokio::spawn(async move {
        loop {
            let stream = acceptor.accept(socket.accept().await.unwrap().0).await.unwrap();
            let mut frames = frames::frames(stream, MAX_FRAME);
            let hello = frames.next().await.unwrap().unwrap();
            let answer = match decode_hello(&hello) {
                Ok((ProtocolVersion::V4, hello)) => {
                    assert!(matches!(hello.purpose, ConnectionPurpose::Worker(_)));
                    let by = Principal::new("node-a", Role::Worker);
                    HelloAnswer::Accepted(HelloAccepted { cluster, by, build: "0.0.9".into() })
                }
                Ok((ProtocolVersion::V5, _)) | Err(_) => {
                    let message = "another version".into();
                    HelloAnswer::Refused { code: HelloRefusalCode::Undecodable, message }
                }
            };
            frames.send(encode_answer(ProtocolVersion::V4, &answer).unwrap()).await.unwrap();
            if matches!(answer, HelloAnswer::Accepted(_)) {
                frames.send(call_of_v4(orders.clone())).await.unwrap();
            }
            tokio::spawn(async move { while let Some(Ok(_)) = frames.next().await {} });
        }
    });
    let token = format!("cohabit1.{cluster}.{}", "5".repeat(64)).parse().unwrap();
    (address, token)
}

fn call_of_v4(orders: Vec<v4::Order>) -> tokio_util::bytes::Bytes {
    let (request, time_left) = (v4::WorkerServiceRequest::Order { orders }, Span::from_secs(30));
    let call: Message<_, NoMessage> = Message::Call { id: 1, time_left, trace: Default::default(), request };
    codec::encode(&call).unwrap()
}

#[tokio::test]
async fn a_client_newer_than_its_head_asks_to_upgrade_the_head_first() {
    let (address, token) = head_of_v4(Vec::new()).await;
    let error = in_time(connect_client(&Endpoint { address, token })).await.map(drop).unwrap_err();
    assert!(matches!(error, LinkError::OtherVersion { theirs: 4, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("speaks protocol 4") && text.contains("speaks protocol 5"), "{text}");
    assert!(text.ends_with("upgrade the head first"), "{text}");
}

#[tokio::test]
async fn a_worker_joins_a_head_of_the_protocol_before_and_takes_its_orders() {
    let sent = some_orders();
    let (address, token) = head_of_v4(sent.iter().cloned().filter_map(v4::Order::of).collect()).await;
    let (orders, mut received) = mpsc::unbounded_channel();
    let endpoint = Endpoint { address, token };
    let link = in_time(connect_worker(&endpoint, hello(), Worker(orders))).await.unwrap();
    assert_eq!(link.accepted.build, "0.0.9");
    assert_eq!(in_time(received.recv()).await.unwrap(), sent);
}

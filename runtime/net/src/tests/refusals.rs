//! Refused peers get the reason and the remedy, at both ends.

use futures::{SinkExt, StreamExt};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::{Fingerprint, HelloRefusalCode, LinkError, LinkErrorKind, PROTOCOL_VERSION, Token, frames, tls};
use cohabit_wire::ProtocolVersion;
use cohabit_wire::hello::{HelloAnswer, LONGEST_HELLO, decode_answer};

async fn refusal(endpoint: &Endpoint) -> LinkError {
    in_time(connect_client(endpoint)).await.map(drop).expect_err("it is refused")
}

fn code_of(error: &LinkError) -> HelloRefusalCode {
    let LinkError::Refused { code, .. } = error else { panic!("{error}") };
    *code
}

#[tokio::test]
async fn an_unknown_token_is_refused() {
    let (head, other) = (TestHead::start().await, TestHead::start().await);
    let stranger = other.endpoint("ada", Role::User, None).token;
    let mut endpoint = head.endpoint("ada", Role::User, None);
    let secret = stranger.expose().rsplit_once('.').unwrap().1.to_owned();
    endpoint.token = format!("cohabit1.{}.{secret}", endpoint.token.fingerprint()).parse().unwrap();
    let error = refusal(&endpoint).await;
    assert_eq!((code_of(&error), error.kind()), (HelloRefusalCode::UnknownToken, LinkErrorKind::NotAllowed));
    assert!(error.to_string().contains("ask an admin"), "{error}");
    assert!(!error.to_string().contains(&secret));
    head.assert_serves("bea").await;
}

#[tokio::test]
async fn an_expired_token_is_refused_as_expired() {
    let head = TestHead::start().await;
    let endpoint = head.endpoint("ada", Role::User, Some(Span::ZERO));
    let error = refusal(&endpoint).await;
    assert_eq!((code_of(&error), error.kind()), (HelloRefusalCode::ExpiredToken, LinkErrorKind::NotAllowed));
    assert!(error.to_string().contains("expired"), "{error}");
}

#[tokio::test]
async fn a_token_allows_only_what_its_role_allows() {
    let mut head = TestHead::start().await;
    let error = refusal(&head.endpoint("node-a", Role::Worker, None)).await;
    assert_eq!(code_of(&error), HelloRefusalCode::WrongRole);
    for (name, role) in [("ada", Role::User), ("wall", Role::Viewer)] {
        let client = head.endpoint(name, role, None);
        connect_client(&client).await.unwrap();
        let error = connect_worker(&client, hello(), head.worker_service()).await.err().unwrap();
        assert_eq!(code_of(&error), HelloRefusalCode::WrongRole);
        let words = format!("'{name}' has the role {role}: use a token for a worker");
        assert!(error.to_string().contains(&words), "{error}");
    }

    let admin = head.endpoint("root", Role::Admin, None);
    connect_client(&admin).await.unwrap();
    connect_worker(&admin, hello(), head.worker_service()).await.unwrap();
    in_time(head.workers.recv()).await.unwrap();
}

#[tokio::test]
async fn a_head_of_another_cluster_is_refused_by_the_client_before_it_says_anything() {
    let (head, other) = (TestHead::start().await, TestHead::start().await);
    let mut endpoint = head.endpoint("ada", Role::User, None);
    endpoint.address = other.address.clone();
    let error = refusal(&endpoint).await;
    assert!(matches!(error, LinkError::WrongCluster { .. }), "{error}");
    assert_eq!(error.kind(), LinkErrorKind::BadConfiguration);
    assert!(error.to_string().contains(&endpoint.token.fingerprint().to_string()), "{error}");
}

#[tokio::test]
async fn a_certificate_that_the_pinned_ca_did_not_sign_is_refused() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [ours, theirs] =
        folders.each_ref().map(|folder| HeadIdentity::open_or_create(folder.path()).unwrap());
    let now = rustls::pki_types::UnixTime::now();
    // Somebody in between who presents our CA's public certificate beside one of his own.
    let error =
        tls::verify_chain(ours.fingerprint(), &theirs.chain()[0], &ours.chain()[1..], now).unwrap_err();
    assert!(tls::is_bad_certificate(&error) && !tls::is_pin_mismatch(&error), "{error}");
    tls::verify_chain(ours.fingerprint(), &ours.chain()[0], &ours.chain()[1..], now).unwrap();
    // The CA itself is no head.
    assert!(tls::verify_chain(ours.fingerprint(), &ours.chain()[1], &ours.chain()[1..], now).is_err());
}

#[tokio::test]
async fn no_listener_is_unreachable_and_a_bad_address_is_reported() {
    let head = TestHead::start().await;
    let token = head.endpoint("ada", Role::User, None).token;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = Endpoint { address: free.to_string(), token: token.clone() };
    let error = refusal(&gone).await;
    assert!(matches!(error, LinkError::Unreachable { .. }), "{error}");
    assert_eq!((error.kind(), error.kind().exit_code()), (LinkErrorKind::Unreachable, 69));
    for address in ["", "head", ":7070", "head:", "head:port", "head:70700"] {
        let error = refusal(&Endpoint { address: address.into(), token: token.clone() }).await;
        assert!(matches!(error, LinkError::BadAddress { .. }), "{address}: {error}");
    }
}

#[tokio::test]
async fn another_server_is_reported_as_not_a_head() {
    let head = TestHead::start().await;
    let token = head.endpoint("ada", Role::User, None).token;
    let web = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = web.local_addr().unwrap().to_string();
    let serve = async {
        let (mut stream, _) = web.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    };
    let endpoint = Endpoint { address, token };
    let (error, _stream) = tokio::join!(refusal(&endpoint), serve);
    assert!(matches!(error, LinkError::NotCohabit { .. }), "{error}");
    assert_eq!(error.kind().exit_code(), 78);
}

#[tokio::test]
async fn a_head_of_another_version_is_reported_with_both_versions_and_the_upgrade() {
    let newer = PROTOCOL_VERSION + 1;
    for (version, build, advice) in [(newer, "9.9.9", "upgrade this one"), (0, "0.0.1", "upgrade the head")] {
        let folder = tempfile::tempdir().unwrap();
        let identity = HeadIdentity::open_or_create(folder.path()).unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let acceptor =
            TlsAcceptor::from(Arc::new(tls::server_config(identity.chain(), identity.key()).unwrap()));
        let answer = async {
            let stream = acceptor.accept(socket.accept().await.unwrap().0).await.unwrap();
            let mut frames = frames::frames(stream, LONGEST_HELLO);
            frames.next().await.unwrap().unwrap();
            frames.send(of_another_version(version, build)).await.unwrap();
            frames
        };
        let token = some_token(identity.fingerprint());
        let endpoint = Endpoint { address, token };
        let (error, _frames) = tokio::join!(refusal(&endpoint), answer);
        let text = error.to_string();
        let theirs = format!("cohabit {build} and speaks protocol {version}");
        for part in [&theirs, &format!("speaks protocol {PROTOCOL_VERSION}"), advice] {
            assert!(text.contains(part), "{part} in: {text}");
        }
    }
}

/// A token that no head knows.
fn some_token(fingerprint: Fingerprint) -> Token {
    format!("cohabit1.{fingerprint}.{}", "5".repeat(64)).parse().unwrap()
}

#[tokio::test]
async fn a_client_of_another_version_is_answered_in_a_layout_that_it_can_read() {
    let head = TestHead::start().await;
    let fingerprint = head.endpoint("ada", Role::User, None).token.fingerprint();
    let mut frames = frames::frames(secured(&head.address, fingerprint).await, LONGEST_HELLO);
    frames.send(of_another_version(PROTOCOL_VERSION + 1, "9.9.9")).await.unwrap();
    let answer = in_time(frames.next()).await.unwrap().unwrap();
    assert_eq!(&answer[..8], b"COHABIT\n");
    assert_eq!(answer[8..12], PROTOCOL_VERSION.to_be_bytes());
    let HelloAnswer::Refused { message, .. } = decode_answer(&answer, ProtocolVersion::CURRENT).unwrap()
    else {
        panic!("refused")
    };
    let (theirs, ours) = (PROTOCOL_VERSION + 1, PROTOCOL_VERSION);
    for part in [format!("cohabit 9.9.9 and speaks protocol {theirs}"), format!("protocol {ours}")] {
        assert!(message.contains(&part), "{message}");
    }
    assert!(in_time(frames.next()).await.is_none());
    head.assert_serves("bea").await;
}

/// A TLS connection to a head on which nothing was said yet.
pub(super) async fn secured(
    address: &str,
    fingerprint: Fingerprint,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let connector = TlsConnector::from(Arc::new(tls::client_config(fingerprint).unwrap()));
    let stream = TcpStream::connect(address).await.unwrap();
    connector.connect(tls::head_name(), stream).await.unwrap()
}

#[tokio::test]
async fn a_full_head_refuses_until_a_client_disconnects() {
    let mut head =
        TestHead::start_within(ListenerLimits { connections: 1, ..ListenerLimits::default() }).await;
    let first = head.client("ada").await;
    let endpoint = head.endpoint("bea", Role::User, None);
    let error = refusal(&endpoint).await;
    assert_eq!((code_of(&error), error.kind()), (HelloRefusalCode::Busy, LinkErrorKind::Unreachable));
    drop(first);
    head.next_end().await;
    connect_client(&endpoint).await.unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_reported_with_the_remedy() {
    let head = TestHead::start().await;
    let folder = tempfile::tempdir().unwrap();
    let identity = HeadIdentity::open_or_create(folder.path()).unwrap();
    let error = Listener::bind(head.address.clone(), &identity, head.tokens.clone()).await.err().unwrap();
    assert!(error.to_string().contains(&head.address) && error.to_string().contains("--listen"), "{error}");
}

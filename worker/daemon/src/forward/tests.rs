//! Connections without a link, to a server in the test.

use cohabit_types::JobId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

fn id(number: u64) -> ForwardId {
    ForwardId { rank: JobId::new(1).attempt(1).rank(0), number }
}

fn read(from: u64, at_end: FollowMode) -> ForwardRead {
    ForwardRead { id: id(7), from, at_end }
}

fn piece(offset: u64, bytes: &[u8]) -> ForwardPiece {
    ForwardPiece { id: id(7), offset, bytes: bytes.to_vec(), is_last: false }
}

/// An open connection, and its server's end.
async fn connected(forwards: &Forwards, id: ForwardId) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    forwards.reserve(id).unwrap().unwrap().fill(stream).unwrap();
    listener.accept().await.unwrap().0
}

fn code<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> RefusalCode {
    answer.unwrap_err().code
}

#[tokio::test]
async fn what_is_asked_for_again_comes_again_and_is_forgotten_once_it_has_arrived() {
    let forwards = Forwards::default();
    let mut server = connected(&forwards, id(7)).await;
    server.write_all(b"one").await.unwrap();
    for _ in 0..2 {
        let output = forwards.read(read(0, FollowMode::Wait)).await.unwrap();
        assert_eq!(output, ForwardOutput { bytes: b"one".to_vec(), is_last: false });
    }
    assert_eq!(code(forwards.read(read(2, FollowMode::Return)).await), RefusalCode::Invalid);
    drop(server);
    let output = forwards.read(read(3, FollowMode::Wait)).await.unwrap();
    assert_eq!(output, ForwardOutput { bytes: Vec::new(), is_last: true });
    assert_eq!(code(forwards.read(read(0, FollowMode::Return)).await), RefusalCode::Invalid);
}

#[tokio::test]
async fn what_is_sent_again_arrives_once_and_each_direction_ends_by_itself() {
    let forwards = Forwards::default();
    let mut server = connected(&forwards, id(7)).await;
    assert_eq!(forwards.write(piece(0, b"hello ")).await, Ok(6));
    assert_eq!(forwards.write(piece(0, b"hello ")).await, Ok(6));
    assert_eq!(code(forwards.write(piece(7, b"x")).await), RefusalCode::Invalid);
    let last = ForwardPiece { is_last: true, ..piece(3, b"lo you") };
    assert_eq!(forwards.write(last.clone()).await, Ok(9));
    assert_eq!(forwards.write(last).await, Ok(9));
    let mut got = String::new();
    server.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "hello you");
    server.write_all(b"bye").await.unwrap();
    assert_eq!(forwards.read(read(0, FollowMode::Wait)).await.unwrap().bytes, b"bye");
}

#[tokio::test]
async fn a_server_that_does_not_read_stops_its_client() {
    let forwards = Forwards::default();
    let mut server = connected(&forwards, id(7)).await;
    let bytes = vec![7; FORWARD_PIECE];
    let mut written = 0;
    loop {
        let now = forwards.write(piece(written, &bytes)).await.unwrap();
        if now < written + FORWARD_PIECE as u64 {
            written = now;
            break;
        }
        written = now;
    }
    // It takes some again once the server reads.
    let (waited, _) = tokio::join!(forwards.write(piece(written, b"")), async {
        let mut left = vec![0; written as usize];
        server.read_exact(&mut left).await.unwrap();
    });
    assert_eq!(waited, Ok(written));
    assert_eq!(forwards.write(piece(written, b"end")).await, Ok(written + 3));
    let too_long = piece(written + 3, &vec![0; FORWARD_PIECE + 1]);
    assert_eq!(code(forwards.write(too_long).await), RefusalCode::Invalid);
}

#[tokio::test]
async fn a_rank_has_few_connections_and_those_of_others_are_not_counted() {
    let forwards = Forwards::default();
    let mut servers = Vec::new();
    for number in 0..MOST_FORWARDS as u64 {
        servers.push(connected(&forwards, id(number)).await);
    }
    assert_eq!(code(forwards.reserve(id(1_000))), RefusalCode::Limit);
    assert!(forwards.reserve(id(0)).unwrap().is_none(), "it is open");
    let other = ForwardId { rank: JobId::new(2).attempt(1).rank(0), number: 1_000 };
    assert!(forwards.reserve(other).unwrap().is_some());
    forwards.close(id(3));
    assert!(forwards.reserve(id(1_000)).unwrap().is_some());
    assert_eq!(servers[3].read(&mut [0]).await.unwrap(), 0, "it is closed");
}

#[tokio::test]
async fn a_request_that_waits_ends_with_its_connection() {
    let forwards = Forwards::default();
    let mut server = connected(&forwards, id(7)).await;
    let waiting = forwards.read(read(0, FollowMode::Wait));
    let (waited, ()) = tokio::join!(biased; waiting, async { forwards.close(id(7)) });
    assert_eq!(code(waited), RefusalCode::NotFound);
    assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn one_that_is_closed_while_it_is_opened_is_not_kept_and_its_place_is_free() {
    let forwards = Forwards::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let reserved = forwards.reserve(id(7)).unwrap().unwrap();
    assert_eq!(code(forwards.reserve(id(7))), RefusalCode::Unavailable);
    forwards.close(id(7));
    assert_eq!(code(reserved.fill(stream)), RefusalCode::NotFound);
    assert_eq!(listener.accept().await.unwrap().0.read(&mut [0]).await.unwrap(), 0, "it is closed");
    drop(forwards.reserve(id(7)).unwrap().unwrap());
    assert!(forwards.reserve(id(7)).unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_closed_once_its_client_is_silent_and_not_before() {
    let forwards = Forwards::default();
    let mut server = connected(&forwards, id(7)).await;
    tokio::time::sleep(LEASE - Duration::from_secs(1)).await;
    forwards.read(read(0, FollowMode::Return)).await.unwrap();
    tokio::time::sleep(LEASE - Duration::from_secs(1)).await;
    assert_eq!(forwards.write(piece(0, b"still")).await, Ok(5));
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    assert_eq!(code(forwards.read(read(0, FollowMode::Return)).await), RefusalCode::NotFound);
    let mut got = Vec::new();
    server.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"still");
}

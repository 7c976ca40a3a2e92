//! Nobody but the processes of the application gets anything from the port of a node.

use std::future::Future;
use std::time::Duration;

use cohabit_application_core::{LinkNumber, SessionHello};
use cohabit_net::ApplicationTls;
use cohabit_types::{ApplicationSecret, RankId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::Instant;

use super::kit::{CALLEE, CALLER, CallingProcess, PORT, SECRET, TestNode, broken, hello_to, member};
use crate::transport::append_frame;
use crate::transport::greeting::{GreetingKind, NetworkGreeting};
use crate::transport::hand_over::hand_over;
use crate::transport::hello::HandOverHello;

const MOST_STRANGERS: usize = 64;

async fn local<T>(test: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(test).await
}

fn greeting(to: RankId) -> [u8; 28] {
    NetworkGreeting { to, kind: GreetingKind::Session }.to_bytes()
}

fn hello_frame(to: RankId) -> Vec<u8> {
    let hello = SessionHello { from: CALLER, to, link: LinkNumber(1), received: 0 };
    let mut bytes = Vec::new();
    append_frame(&hello_to(to, hello), 1 << 10, &mut bytes).unwrap();
    bytes
}

/// What comes until the connection is closed or reset.
async fn answer(mut stream: impl tokio::io::AsyncRead + Unpin) -> Vec<u8> {
    let mut answer = Vec::new();
    let _closed = stream.read_to_end(&mut answer).await;
    answer
}

#[tokio::test]
async fn who_does_not_greet_gets_nothing() {
    local(async {
        let node = TestNode::start();
        let mut wrong_magic = greeting(CALLEE);
        wrong_magic[3] ^= 1;
        let mut wrong_kind = greeting(CALLEE);
        wrong_kind[20] = 2;
        for bytes in [
            b"GET / HTTP/1.1\r\nHost: node\r\n\r\n".to_vec(),
            wrong_magic.to_vec(),
            wrong_kind.to_vec(),
            // A greeting of a megabyte.
            vec![0xff; 1 << 20],
            // A part of one.
            greeting(CALLEE)[..23].to_vec(),
        ] {
            let mut stream = node.connect().await;
            // It may be closed before all is written.
            let _written = stream.write_all(&bytes).await;
            let _ended = stream.shutdown().await;
            assert_eq!(answer(stream).await, [0; 0]);
        }
        assert_eq!((node.port.admitted.get(), node.callee.admitted.get()), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn who_does_not_know_the_secret_gets_nothing() {
    local(async {
        let node = TestNode::start();
        let mut almost = [7; 32];
        almost[31] ^= 1;
        for to in [PORT, CALLEE] {
            broken(CallingProcess::new(&node.at, to, ApplicationSecret(almost)).connect().await);
            // The right words, without TLS. What comes back is an alert, of seven bytes.
            let mut stream = node.connect().await;
            stream.write_all(&[&greeting(to)[..], &hello_frame(to)].concat()).await.unwrap();
            assert!(answer(stream).await.len() <= 7);
        }
        assert_eq!((node.port.admitted.get(), node.callee.admitted.get()), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn a_process_of_the_application_has_to_say_what_it_wants() {
    local(async {
        let node = TestNode::start();
        let tls = ApplicationTls::new(&SECRET);
        for to in [PORT, CALLEE] {
            for bytes in [
                // For another process than its greeting was.
                hello_frame(member(9)),
                // A hello of four gigabytes, and one of a byte more than is allowed.
                vec![0xff; 64],
                [&1_025u32.to_be_bytes()[..], &[0; 1_025]].concat(),
                b"hello".to_vec(),
            ] {
                let mut stream = node.connect().await;
                stream.write_all(&greeting(to)).await.unwrap();
                let mut stream = tls.connect(stream).await.unwrap();
                stream.write_all(&bytes).await.unwrap();
                stream.shutdown().await.unwrap();
                assert_eq!(answer(stream).await, [0; 0]);
            }
            // A relay that sends the connection elsewhere only breaks it.
            let mut stream = node.connect().await;
            stream.write_all(&greeting(to)).await.unwrap();
            let mut stream = tls.connect(stream).await.unwrap();
            let other = if to == PORT { CALLEE } else { PORT };
            stream.write_all(&hello_frame(other)).await.unwrap();
            stream.flush().await.unwrap();
            assert_eq!(answer(stream).await, [0; 0]);
        }
        assert_eq!((node.port.admitted.get(), node.callee.admitted.get()), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_cut_off_after_five_seconds() {
    local(async {
        let node = TestNode::start();
        let silent = node.connect().await;
        let mut in_handshake = node.connect().await;
        in_handshake.write_all(&greeting(CALLEE)).await.unwrap();
        let mut after_handshake = node.connect().await;
        after_handshake.write_all(&greeting(PORT)).await.unwrap();
        let after_handshake = ApplicationTls::new(&SECRET).connect(after_handshake).await.unwrap();
        let start = Instant::now();
        let (first, second, third) =
            tokio::join!(answer(silent), answer(in_handshake), answer(after_handshake));
        assert_eq!([first, second, third], [const { Vec::<u8>::new() }; 3]);
        let limit = Duration::from_secs(5);
        let took = start.elapsed();
        assert!(took <= limit + Duration::from_millis(10) && took > limit / 2, "{took:?}");
    })
    .await;
}

/// Lets a member in although 64 others have said so much and no more.
async fn comes_in_beside(said: &[u8], to: RankId) {
    let node = TestNode::start();
    let mut silent: Vec<TcpStream> = Vec::new();
    for _ in 0..MOST_STRANGERS {
        let mut stream = node.connect().await;
        stream.write_all(said).await.unwrap();
        silent.push(stream);
    }
    let caller = CallingProcess::new(&node.at, to, SECRET);
    caller.send(1);
    let start = Instant::now();
    caller.keep_connected();
    caller.end.until_received(1).await;
    assert!(start.elapsed() <= Duration::from_secs(11), "{:?}", start.elapsed());
    assert_eq!(caller.opened.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn silent_strangers_keep_nobody_out_for_long() {
    for to in [PORT, CALLEE] {
        local(comes_in_beside(b"", to)).await;
        local(comes_in_beside(&greeting(PORT), to)).await;
        local(comes_in_beside(&greeting(CALLEE), to)).await;
    }
}

#[tokio::test]
async fn connections_for_objects_go_to_the_store() {
    local(async {
        let node = TestNode::start();
        let mut stream = node.connect().await;
        let greeting = NetworkGreeting { to: member(9), kind: GreetingKind::Objects };
        stream.write_all(&greeting.to_bytes()).await.unwrap();
        // That of this test closes them.
        assert_eq!(answer(stream).await, [0; 0]);
        assert_eq!(node.objects.get(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_process_takes_nothing_over_from_one_that_does_not_know_the_secret() {
    local(async {
        let node = TestNode::start();
        let tls = ApplicationTls::new(&SECRET);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for (secret, is_taken) in [(ApplicationSecret([8; 32]), false), (SECRET, true)] {
            let (dialed, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            let accepted = accepted.unwrap().0;
            hand_over(&node.directory, HandOverHello { secret, to: CALLEE }, &accepted).await.unwrap();
            drop(accepted);
            assert_eq!(tls.connect(dialed.unwrap()).await.is_ok(), is_taken);
        }
        // The socket of another process, and no connection at all.
        let wrong = node.directory.connect(crate::transport::SocketName::HandOver(CALLEE)).await.unwrap();
        let mut bytes = Vec::new();
        append_frame(&HandOverHello { secret: SECRET, to: CALLEE }, 1 << 10, &mut bytes).unwrap();
        let (mut reading, mut writing) = wrong.into_split();
        writing.write_all(&bytes).await.unwrap();
        assert_eq!(answer(&mut reading).await, [0; 0]);
        assert_eq!(node.callee.admitted.get(), 0);
    })
    .await;
}

//! Nobody but the processes of an application gets anything from its sockets.

use std::os::unix::fs::symlink;
use std::path::Path;

use cohabit_application_core::{LinkNumber, SessionHello};
use cohabit_client::types::{ApplicationSecret, JobId, LogStream, RankId, RunnerRole};
use cohabit_wire::codec;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::fake_head::FakeHead;
use crate::program;

/// The first frame of a connection, as processes of applications send it.
#[derive(Serialize)]
struct Hello {
    secret: ApplicationSecret,
    purpose: Purpose,
    hello: SessionHello,
}

#[derive(Serialize, Clone, Copy)]
enum Purpose {
    Coordinator { role: RunnerRole, node: &'static str },
    Calls,
}

fn hello(secret: u8, purpose: Purpose, from: RankId, to: RankId) -> Vec<u8> {
    let hello = SessionHello { from, to, link: LinkNumber(1), received: 0 };
    let frame = codec::encode(&Hello { secret: ApplicationSecret([secret; 32]), purpose, hello }).unwrap();
    [&(frame.len() as u32).to_be_bytes()[..], &frame].concat()
}

/// The name of the socket of a process.
fn socket_name(RankId { attempt, rank }: RankId) -> String {
    format!("{}-{}-{rank}", attempt.job, attempt.attempt)
}

/// What a socket answers to these bytes, until it is closed.
async fn answer(sockets: &Path, to: RankId, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(sockets.join(socket_name(to))).await.unwrap();
    // It may be closed before all is written.
    let _written = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _closed = stream.read_to_end(&mut answer).await;
    answer
}

#[tokio::test]
async fn strangers_get_nothing() {
    let head = FakeHead::start().await;
    let root = head.launch(&program(), &["wait"]);
    let main = JobId::new(root.number + 1);
    let printed = |jobs: &crate::fake_jobs::Jobs| Some(jobs.get(&main)?.text(LogStream::Stdout));
    head.until(|jobs| printed(jobs).filter(|text| text == "waits with 1\n")).await;

    // A short path to the same directory, for this process does not open it first.
    let sockets = head.folder().join("s");
    symlink(head.places().sockets("n0", root.attempt(1)), &sockets).unwrap();
    let (coordinator, actor) = (root.attempt(1).rank(0), JobId::new(3).attempt(1).rank(0));
    let stranger = JobId::new(9).attempt(1).rank(0);
    let to_coordinator = Purpose::Coordinator { role: RunnerRole::Actor, node: "n0" };
    let mut one_bit = hello(7, to_coordinator, stranger, coordinator);
    one_bit[35] ^= 1;
    let nothing = Vec::<u8>::new();
    for (to, bytes) in [
        (coordinator, hello(8, to_coordinator, stranger, coordinator)),
        (coordinator, one_bit),
        // For another process, and for another session.
        (coordinator, hello(7, to_coordinator, stranger, actor)),
        (coordinator, hello(7, Purpose::Calls, stranger, coordinator)),
        (coordinator, b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        // A frame of four gigabytes.
        (coordinator, vec![0xff; 64]),
        (actor, hello(8, Purpose::Calls, stranger, actor)),
        (actor, hello(7, to_coordinator, stranger, actor)),
        (actor, vec![0xff; 64]),
    ] {
        assert_eq!(answer(&sockets, to, &bytes).await, nothing);
    }
    // With the secret it would be let in: the cases above differ by what they say. The connection stays open.
    let path = sockets.join(socket_name(actor));
    let mut stream = UnixStream::connect(path).await.unwrap();
    stream.write_all(&hello(7, Purpose::Calls, stranger, actor)).await.unwrap();
    let mut answered = [0; 4];
    stream.read_exact(&mut answered).await.unwrap();
    assert!(u32::from_be_bytes(answered) < 100);
    head.jobs()[&root].signal(nix::sys::signal::Signal::SIGTERM);
    head.ended(root).await;
}

//! Whoever asks a store for what it has not, or asks wrongly; and fetchers that are killed.

use std::io::{Read, Write};
use std::net::SocketAddr;

use cohabit_application_core::{FetchFailure, ObjectId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::transfer::{FetchReply, FetchRequest, read_frame, write_frame};
use super::killed::{READY, run_alone, test_process_with, wait_until_ready};
use super::kit::{MAKER, MIB, READER, is_intact, object, open_files, writer_of};
use super::nodes::Nodes;

/// Where the store of a test process listens.
const SOURCE: &str = "COHABIT_TEST_STORE_SOURCE";

async fn ask(stream: &mut TcpStream, object: ObjectId, offset: u64, length: u64) -> FetchReply {
    write_frame(stream, &FetchRequest { object, offset, length }).await.unwrap();
    read_frame(stream).await.unwrap()
}

#[tokio::test]
async fn parts_that_are_not_there_are_refused_and_others_served() {
    let nodes = Nodes::default();
    let source = nodes.start(0, MIB).await;
    source.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
    let mut stream = nodes.connect(0).await.unwrap();
    for (number, offset, length) in
        [(1, MIB, 1), (1, 1, MIB), (1, u64::MAX, 1), (1, 1, u64::MAX), (1, MIB + 1, 0)]
    {
        let reply = ask(&mut stream, object(number), offset, length).await;
        assert!(matches!(reply, FetchReply::Refused(_)), "{number} {offset} {length}: {reply:?}");
    }
    assert_eq!(ask(&mut stream, object(2), 0, 1).await, FetchReply::Refused(FetchFailure::Missing));
    let mapping = source.link(READER).read(object(1)).await.unwrap();
    for (offset, length) in [(0, 0), (MIB, 0), (7, 4097), (0, MIB)] {
        assert_eq!(ask(&mut stream, object(1), offset, length).await, FetchReply::Follows { bytes: MIB });
        let mut part = vec![0; length as usize];
        stream.read_exact(&mut part).await.unwrap();
        assert!(part == mapping[offset as usize..][..length as usize]);
    }
    assert!(is_intact(1, &mapping));
}

#[tokio::test]
async fn long_frames_and_nonsense_end_the_connection() {
    let nodes = Nodes::default();
    let source = nodes.start(0, MIB).await;
    source.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
    let long = (10_u32 << 20).to_be_bytes();
    let nonsense = [&8_u32.to_be_bytes()[..], &[255; 8]].concat();
    for bytes in [&long[..], &u32::MAX.to_be_bytes(), &nonsense] {
        let mut stream = nodes.connect(0).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut reply = Vec::new();
        // It may have been reset.
        let _closed = stream.read_to_end(&mut reply).await;
        assert_eq!(reply, [0; 0]);
    }
    let mut stream = nodes.connect(0).await.unwrap();
    assert_eq!(ask(&mut stream, object(1), 0, 0).await, FetchReply::Follows { bytes: MIB });
}

#[tokio::test]
async fn eight_connections_are_served_and_others_wait_for_them() {
    let nodes = Nodes::default();
    let source = nodes.start(0, MIB).await;
    source.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
    let mut served = Vec::new();
    for _ in 0..8 {
        let mut stream = nodes.connect(0).await.unwrap();
        assert_eq!(ask(&mut stream, object(1), 0, 0).await, FetchReply::Follows { bytes: MIB });
        served.push(stream);
    }
    let mut ninth = nodes.connect(0).await.unwrap();
    write_frame(&mut ninth, &FetchRequest { object: object(1), offset: 0, length: 0 }).await.unwrap();
    for stream in &mut served {
        assert_eq!(ask(stream, object(1), 0, 0).await, FetchReply::Follows { bytes: MIB });
    }
    assert!(ninth.try_read(&mut [0]).is_err(), "it waits");
    served.pop();
    assert_eq!(read_frame::<FetchReply>(&mut ninth).await.unwrap(), FetchReply::Follows { bytes: MIB });
}

#[test]
fn a_killed_fetcher_leaves_nothing() {
    run_alone("store::tests::hostile_fetches::serving_a_fetcher_that_is_killed");
}

#[tokio::test]
#[ignore = "it counts the descriptors of its process: another test starts it in its own"]
async fn serving_a_fetcher_that_is_killed() {
    let nodes = Nodes::default();
    let source = nodes.start(0, 64 * MIB).await;
    source.link(MAKER).store(object(1), writer_of(1, 64 * MIB)).await.unwrap();
    let address = nodes.address(0).to_string();
    let test = "store::tests::hostile_fetches::fetching_until_killed";
    let mut fetcher = test_process_with(test, SOURCE, address.as_ref());
    // Its connections are accepted by this thread.
    tokio::task::spawn_blocking(move || {
        wait_until_ready(&mut fetcher);
        fetcher.kill().unwrap();
        fetcher.wait().unwrap();
    })
    .await
    .unwrap();
    source.store.free(object(1));
    source.until(|it| it.objects.is_empty() && it.memory == 0).await;
    while !open_files("/memfd:").is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
#[ignore = "it waits to be killed: another test starts it"]
async fn fetching_until_killed() {
    let address: SocketAddr = std::env::var(SOURCE).unwrap().parse().unwrap();
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert_eq!(ask(&mut stream, object(1), 0, 64 * MIB).await, FetchReply::Follows { bytes: 64 * MIB });
        stream.read_exact(&mut [0; 4096]).await.unwrap();
        streams.push(stream);
    }
    std::io::stdout().write_all(&[READY]).unwrap();
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_exact(&mut [0]).unwrap();
    drop(streams);
}

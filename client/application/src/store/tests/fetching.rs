//! Objects that come from other nodes.

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use cohabit_application_core::{
    CallError, FetchFailure, FromStore, ObjectKind, ObjectPlace, RequestNumber, ToStore,
};
use futures::future::{Either, select};
use futures::{FutureExt, poll};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::transfer::{FetchReply, FetchRequest, read_frame, write_frame};
use super::kit::{MAKER, MIB, READER, full, is_intact, member, object, writer_of};
use super::nodes::{Nodes, TestNode, failed};

/// Does something while the other future waits.
async fn beside<T>(waiting: &mut (impl Future + Unpin), work: impl Future<Output = T>) -> T {
    match select(waiting, pin!(work)).await {
        Either::Left(_) => panic!("it should wait"),
        Either::Right((result, _)) => result,
    }
}

/// A node that reads what the other one has made.
async fn two_nodes(source: u64, reader: u64) -> (Nodes, TestNode, TestNode) {
    let nodes = Nodes::default();
    let (source, reader) = (nodes.start(0, source).await, nodes.start(1, reader).await);
    (nodes, source, reader)
}

#[tokio::test]
async fn objects_come_from_memory_and_from_disk_as_they_are() {
    let sizes = [8 * MIB, 200 * MIB, MIB];
    let (_nodes, source, mut reader) = two_nodes(201 * MIB, 210 * MIB).await;
    let (maker, link) = (source.link(MAKER), reader.link(READER));
    for (number, size) in (1..).zip(sizes) {
        maker.store(object(number), writer_of(number, size)).await.unwrap();
    }
    let places: Vec<_> = source.store.figures().await.unwrap().objects.iter().map(|it| it.place).collect();
    assert_eq!(places, [Some(ObjectPlace::Disk), Some(ObjectPlace::Memory), Some(ObjectPlace::Memory)]);
    for (number, size) in (1..).zip(sizes) {
        let mapping = reader.read_from(&link, object(number), size, 0).await.unwrap();
        assert_eq!(mapping.len() as u64, size);
        assert!(is_intact(number, &mapping), "object {number}");
    }
    let figures = reader.until(|it| it.mapped_bytes() == 0).await;
    assert_eq!((figures.memory, figures.disk), (209 * MIB, 0));
    assert!(figures.objects.iter().all(|it| it.kind == ObjectKind::Copy));
    // Now it is here, for all processes of the node.
    let other = reader.link(member(4));
    assert!(is_intact(2, &other.read(object(2)).await.unwrap()));
    for number in 1..=3 {
        source.store.free(object(number));
        reader.store.free(object(number));
    }
    source.until(|it| it.objects.is_empty() && it.memory + it.disk == 0).await;
    reader.until(|it| it.objects.is_empty() && it.memory + it.disk == 0).await;
    assert!(reader.said_nothing());
}

#[tokio::test]
async fn an_object_is_fetched_once_for_all_who_want_it() {
    let (_nodes, source, mut reader) = two_nodes(2 * MIB, 2 * MIB).await;
    source.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
    let (one, other) = (reader.link(READER), reader.link(member(4)));
    let reading =
        async { futures::try_join!(one.read(object(1)), one.read(object(1)), other.read(object(1))) };
    let fetching = async {
        reader.wants(object(1)).await;
        reader.fetch(object(1), MIB, 0).await.unwrap();
    };
    let (read, ()) = futures::join!(reading, fetching);
    let (first, second, third) = read.unwrap();
    assert!([&first, &second, &third].into_iter().all(|it| is_intact(1, it)));
    assert!(reader.said_nothing());
}

#[tokio::test]
async fn whoever_waits_for_another_node_knows_it() {
    let (_nodes, source, mut reader) = two_nodes(2 * MIB, 2 * MIB).await;
    let link = reader.link(READER);
    source.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
    let (begun, ended) = (Cell::new(0), Cell::new(0));
    let wait = || {
        begun.set(begun.get() + 1);
        EndCounter(&ended)
    };
    let mut reading = pin!(link.read_noting(object(1), wait));
    let mut another = pin!(link.read_noting(object(1), wait));
    while begun.get() < 2 {
        assert!(poll!(&mut reading).is_pending() && poll!(&mut another).is_pending());
        tokio::task::yield_now().await;
    }
    // One that comes later knows it at once.
    assert!(poll!(pin!(link.read_noting(object(1), wait))).is_pending());
    assert_eq!((begun.get(), ended.get()), (3, 1));
    reader.wants(object(1)).await;
    reader.fetch(object(1), MIB, 0).await.unwrap();
    let mapping = reading.await.unwrap();
    another.await.unwrap();
    assert_eq!((begun.get(), ended.get()), (3, 3));
    assert!(is_intact(1, &mapping));
    link.read_noting(object(1), wait).await.unwrap();
    assert_eq!(begun.get(), 3, "it is here");
}

struct EndCounter<'a>(&'a Cell<u32>);

impl Drop for EndCounter<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// A store that dies when it has sent half of an object.
async fn send_half(mut stream: TcpStream, bytes: u64) {
    let request: FetchRequest = read_frame(&mut stream).await.unwrap();
    assert_eq!(request, FetchRequest { object: object(1), offset: 0, length: bytes });
    write_frame(&mut stream, &FetchReply::Follows { bytes }).await.unwrap();
    stream.write_all(&vec![1; bytes as usize / 2]).await.unwrap();
}

#[tokio::test]
async fn a_source_that_dies_is_told_and_another_one_is_asked() {
    let (nodes, source, mut reader) = two_nodes(8 * MIB, 8 * MIB).await;
    let dying = nodes.listen(2).await;
    source.link(MAKER).store(object(1), writer_of(1, 8 * MIB)).await.unwrap();
    let link = reader.link(READER);
    let reading = link.read(object(1));
    let fetching = async {
        reader.wants(object(1)).await;
        let (cut, ()) = futures::join!(reader.fetch(object(1), 8 * MIB, 2), async {
            let (stream, _) = dying.accept().await.unwrap();
            send_half(stream, 8 * MIB).await;
        });
        let text = failed(cut);
        assert!(text.starts_with("node 2: the transfer from its store: the connection broke"), "{text}");
        let figures = reader.store.figures().await.unwrap();
        assert_eq!((figures.memory, figures.objects.len()), (0, 0), "its memory is given back");
        drop(dying);
        let text = failed(reader.fetch(object(1), 8 * MIB, 2).await);
        assert!(text.starts_with("node 2: its store cannot be reached: "), "{text}");
        let text = failed(reader.fetch(object(1), 8 * MIB, 3).await);
        assert!(text.starts_with("node 3: its store cannot be reached: "), "{text}");
        reader.fetch(object(1), 8 * MIB, 0).await.unwrap();
    };
    let (read, ()) = futures::join!(reading, fetching);
    assert!(is_intact(1, &read.unwrap()));
    assert!(reader.said_nothing(), "it asked once");
}

#[tokio::test]
async fn an_object_of_another_size_or_none_is_refused() {
    let (_nodes, source, mut reader) = two_nodes(8 * MIB, 8 * MIB).await;
    source.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
    let link = reader.link(READER);
    let reading = link.read(object(1));
    let fetching = async {
        reader.wants(object(1)).await;
        let text = failed(reader.fetch(object(1), MIB - 1, 0).await);
        let size = format!("its store has {MIB} bytes of object {}, which has {}", object(1), MIB - 1);
        assert_eq!(text, format!("node 0: {size}"));
        let text = failed(reader.fetch(object(1), MIB + 1, 0).await);
        assert!(text.ends_with("reach beyond its end"), "{text}");
        source.store.free(object(1));
        let missing = reader.fetch(object(1), MIB, 0).await;
        assert_eq!(missing, Err(FetchFailure::Missing));
        let lost = CallError::ObjectLost("nobody has it".repeat(1_000));
        reader.store.obey(ToStore::Lost { object: object(1), error: lost });
    };
    let (read, ()) = futures::join!(reading, fetching);
    let Err(CallError::ObjectLost(text)) = read else { panic!("{read:?}") };
    assert!(text.contains("nobody has it") && text.len() < 1_000, "it fits a frame: {text}");
    reader.until(|it| it.objects.is_empty() && it.memory == 0).await;
}

#[tokio::test]
async fn a_copy_makes_room_and_comes_again() {
    let (_nodes, source, mut reader) = two_nodes(8 * MIB, 8 * MIB).await;
    source.link(MAKER).store(object(1), writer_of(1, 8 * MIB)).await.unwrap();
    let link = reader.link(READER);
    drop(reader.read_from(&link, object(1), 8 * MIB, 0).await.unwrap());
    reader.until(|it| it.mapped_bytes() == 0).await;
    let own = cohabit_application_core::ObjectId { maker: READER, number: 1 };
    link.store(own, writer_of(2, 8 * MIB)).await.unwrap();
    assert_eq!(reader.said().await, FromStore::Dropped { object: object(1) });
    assert_eq!(reader.bytes().await, (8 * MIB, 0));
    let mapping = reader.read_from(&link, object(1), 8 * MIB, 0).await.unwrap();
    assert!(is_intact(1, &mapping));
    assert_eq!(reader.bytes().await, (8 * MIB, 8 * MIB), "the primary is on disk");
    reader.store.free(own);
    reader.store.free(object(1));
    drop(mapping);
    reader.until(|it| it.objects.is_empty() && it.memory + it.disk == 0).await;
}

#[tokio::test]
async fn room_has_a_deadline_and_another_node_has_none() {
    let nodes = Nodes::default();
    let mut reader = nodes.start_with(1, 2 * MIB, Duration::from_millis(50)).await;
    let (link, other) = (reader.link(READER), reader.link(member(4)));
    let own = cohabit_application_core::ObjectId { maker: READER, number: 1 };
    link.store(own, writer_of(2, 2 * MIB)).await.unwrap();
    let mapping = link.read(own).await.unwrap();
    let mut reading = pin!(other.read(object(1)).map(|read| read.map(drop)));
    // The coordinator takes its time.
    beside(&mut reading, async {
        reader.wants(object(1)).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    })
    .await;
    // Nobody waits for it any more when there would be room.
    let fetched = reader.fetch(object(1), MIB, 0);
    let (read, fetched) = futures::join!(reading, fetched);
    assert!(full(read).starts_with("there was none within 50ms"));
    assert_eq!(fetched, Ok(()), "as far as the coordinator is concerned");
    assert_eq!(reader.said().await, FromStore::Dropped { object: object(1) });
    drop(mapping);
}

#[tokio::test]
async fn what_is_made_again_on_the_node_of_its_readers_is_theirs() {
    let nodes = Nodes::default();
    let mut reader = nodes.start(1, 4 * MIB).await;
    let (link, maker) = (reader.link(READER), reader.link(member(4)));
    let reading = link.read(object(1));
    let making = async {
        reader.wants(object(1)).await;
        maker.remake(object(1), writer_of(1, MIB)).await.unwrap();
    };
    let (read, ()) = futures::join!(reading, making);
    assert!(is_intact(1, &read.unwrap()));
    let figures = reader.store.figures().await.unwrap();
    assert_eq!((figures.objects.len(), figures.objects[0].kind), (1, ObjectKind::Primary));
    // It is there, and so it is well.
    maker.remake(object(1), writer_of(2, MIB)).await.unwrap();
    assert!(is_intact(1, &maker.read(object(1)).await.unwrap()));
    reader.fetch(object(1), MIB, 0).await.unwrap();
    assert!(reader.said_nothing());
}

#[tokio::test]
async fn the_coordinator_is_told_what_a_store_has() {
    let nodes = Nodes::default();
    let mut node = nodes.start(1, 4 * MIB).await;
    node.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
    node.store.obey(ToStore::Tell { request: RequestNumber(7) });
    let figures = node.store.figures().await.unwrap();
    assert_eq!(node.said().await, FromStore::Told { request: RequestNumber(7), figures });
}

#[tokio::test]
async fn what_is_freed_on_its_way_leaves_nothing() {
    let (nodes, _source, mut reader) = two_nodes(MIB, 8 * MIB).await;
    let slow = nodes.listen(2).await;
    let link = reader.link(READER);
    let mut reading = pin!(link.read(object(1)).map(|read| read.map(drop)));
    beside(&mut reading, reader.wants(object(1))).await;
    let from = cohabit_application_core::NodeNumber(2);
    reader.store.obey(ToStore::Fetch { object: object(1), bytes: MIB, from });
    let (mut stream, _) = slow.accept().await.unwrap();
    let _request: FetchRequest = read_frame(&mut stream).await.unwrap();
    reader.store.free(object(1));
    assert!(matches!(reading.await, Err(CallError::ObjectLost(_))));
    assert_eq!(reader.bytes().await, (MIB, 0));
    write_frame(&mut stream, &FetchReply::Follows { bytes: MIB }).await.unwrap();
    stream.write_all(&vec![0; MIB as usize]).await.unwrap();
    assert_eq!(reader.said().await, FromStore::Fetched { object: object(1), result: Ok(()) });
    reader.until(|it| it.objects.is_empty() && it.memory == 0).await;
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "the connection has ended");
}

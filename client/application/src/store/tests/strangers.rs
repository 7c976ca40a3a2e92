//! Whoever breaks the protocol is cut off, and nothing of it is left.

use std::time::Duration;

use bytes::BytesMut;
use cohabit_application_core::{CallError, MAX_STORE_FRAME, ObjectId, StoreReply, StoreRequest};
use cohabit_types::ApplicationSecret;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::super::frame_stream::{FrameReader, send_frame};
use super::super::store_link::StoreLink;
use super::kit::{MAKER, MIB, READER, ROOT, SECRET, TestStore, is_intact, member, object, writer_of};

/// Waits until the store closes the connection, without a reply.
async fn is_cut_off(mut stream: UnixStream) {
    let mut replies = Vec::new();
    // It may have been reset.
    let _closed = stream.read_to_end(&mut replies).await;
    assert_eq!(replies, [0; 0]);
}

#[tokio::test]
async fn a_wrong_secret_is_refused() {
    let test = TestStore::with_budget(MIB);
    let mut almost = [7; 32];
    almost[31] ^= 1;
    is_cut_off(test.connect(ApplicationSecret(almost), MAKER).await).await;
    let directory = std::sync::Arc::clone(&test.directory);
    let patience = Duration::from_millis(200);
    let link = StoreLink::new(directory, ApplicationSecret(almost), MAKER, ROOT).with_patience(patience);
    assert!(matches!(link.store(object(1), writer_of(1, MIB)).await, Err(CallError::Refused(_))));
    let directory = std::sync::Arc::clone(&test.directory);
    let elsewhere = StoreLink::new(directory, SECRET, MAKER, READER).with_patience(patience);
    assert!(matches!(elsewhere.read(object(1)).await, Err(CallError::ObjectLost(_))));
    test.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
}

#[tokio::test]
async fn who_breaks_the_protocol_is_cut_off() {
    let test = TestStore::with_budget(4 * MIB);
    test.link(MAKER).store(object(1), writer_of(1, MIB)).await.unwrap();
    // As long as it is mapped, there is no room for 4 MiB.
    let other = test.link(member(4));
    let mapping = other.read(object(1)).await.unwrap();
    let foreign = object(9);
    let own = ObjectId { maker: READER, number: 1 };
    for requests in [
        // Objects that another process makes.
        vec![StoreRequest::Reserve { object: foreign, bytes: 1 }],
        vec![StoreRequest::Filled { object: object(1) }],
        // Memory that it never had.
        vec![StoreRequest::Filled { object: own }],
        // What it waits for already.
        vec![StoreRequest::Reserve { object: own, bytes: 4 * MIB }, StoreRequest::Want { object: own }],
    ] {
        let stream = test.connect(SECRET, READER).await;
        for request in &requests {
            send_frame(&stream, request, None).await.unwrap();
        }
        is_cut_off(stream).await;
        test.until(|it| it.objects.len() == 1 && it.memory == MIB).await;
    }
    let mut stream = test.connect(SECRET, READER).await;
    stream.write_all(&(MAX_STORE_FRAME as u32 + 1).to_be_bytes()).await.unwrap();
    is_cut_off(stream).await;
    let stream = test.connect(SECRET, READER).await;
    // Descriptors that come with the first frame are closed by the kernel.
    send_frame(&stream, &StoreRequest::Want { object: foreign }, None).await.unwrap();
    let mut frames = FrameReader::new(&stream, BytesMut::new());
    assert_eq!(frames.next::<StoreReply>().await.unwrap(), StoreReply::Fetching { object: foreign });
    let refused: StoreReply = frames.next().await.unwrap();
    assert!(matches!(refused, StoreReply::Refused { object, .. } if object == foreign));
    let file = std::fs::File::open("/dev/null").unwrap();
    let descriptor = Some(std::os::fd::AsFd::as_fd(&file));
    send_frame(&stream, &StoreRequest::Want { object: object(1) }, descriptor).await.unwrap();
    is_cut_off(stream).await;
    drop(mapping);
    assert!(is_intact(1, &test.link(READER).read(object(1)).await.unwrap()));
}

#[tokio::test]
async fn memory_that_is_not_sealed_is_no_object() {
    let test = TestStore::with_budget(MIB);
    let stream = test.connect(SECRET, MAKER).await;
    send_frame(&stream, &StoreRequest::Reserve { object: object(1), bytes: MIB }, None).await.unwrap();
    let mut frames = FrameReader::new(&stream, BytesMut::new());
    let reply: StoreReply = frames.next().await.unwrap();
    assert_eq!(reply, StoreReply::Allocated { object: object(1) });
    let memory = frames.descriptor().unwrap();
    send_frame(&stream, &StoreRequest::Filled { object: object(1) }, None).await.unwrap();
    is_cut_off(stream).await;
    test.until(|it| it.objects.is_empty() && it.memory == 0).await;
    drop(memory);
}

#[tokio::test]
async fn a_process_has_one_connection() {
    let test = TestStore::with_budget(MIB);
    let link = test.link(MAKER);
    link.store(object(1), writer_of(1, MIB)).await.unwrap();
    let mapping = link.read(object(1)).await.unwrap();
    is_cut_off(test.connect(SECRET, MAKER).await).await;
    assert_eq!(test.store.figures().await.unwrap().mapped_bytes(), MIB, "the first one is still open");
    drop(mapping);
}

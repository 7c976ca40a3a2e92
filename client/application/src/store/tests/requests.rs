//! What processes store and read, and what is left when they go.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use cohabit_application_core::{CallError, FromStore, ObjectId, ObjectPlace, ToStore};
use cohabit_memory::{Buffer, ObjectWriter, read_object};
use futures::future::{Either, select};
use futures::poll;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;

use super::super::settings::{ROOM_PATIENCE, StoreOutlets, StoreSettings};
use super::super::store_link::StoreLink;
use super::kit::{
    MAKER, MIB, READER, ROOT, SECRET, TestStore, content, is_intact, nobody, object, pattern, writer_of,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Sample {
    name: String,
    weights: Buffer<f32>,
    parts: Vec<Option<Buffer<u64>>>,
}

fn sample() -> Sample {
    Sample {
        name: "digits".into(),
        weights: (0..60_000u16).map(f32::from).collect(),
        parts: vec![None, Some((0..9_999).collect()), Some(Buffer::default())],
    }
}

#[tokio::test]
async fn values_come_back_as_they_were() {
    let test = TestStore::with_budget(64 * MIB);
    let maker = test.link(MAKER);
    maker.store(object(1), ObjectWriter::new(&sample()).unwrap()).await.unwrap();
    maker.store(object(2), ObjectWriter::new("no buffers").unwrap()).await.unwrap();
    for link in [&test.link(READER), &maker] {
        let read: Sample = read_object(&link.read(object(1)).await.unwrap()).unwrap();
        assert!(read == sample() && read.weights.is_shared());
        let text: String = read_object(&link.read(object(2)).await.unwrap()).unwrap();
        assert_eq!(text, "no buffers");
    }
}

#[tokio::test]
async fn readers_share_a_mapping_and_the_last_one_gives_it_back() {
    let test = TestStore::with_budget(64 * MIB);
    let (maker, reader) = (test.link(MAKER), test.link(READER));
    maker.store(object(1), writer_of(1, MIB)).await.unwrap();
    let (one, other) = futures::try_join!(reader.read(object(1)), reader.read(object(1))).unwrap();
    let third = reader.read(object(1)).await.unwrap();
    assert_eq!((one.as_ptr(), one.as_ptr()), (other.as_ptr(), third.as_ptr()));
    let mapped = async || test.store.figures().await.unwrap().objects[0].mapped.clone();
    assert_eq!(mapped().await, [(READER, 1)]);
    let own = maker.read(object(1)).await.unwrap();
    assert_eq!(mapped().await, [(MAKER, 1), (READER, 1)]);
    drop((one, other));
    test.store.free(object(1));
    assert!(is_intact(1, &third), "what is mapped stays");
    assert_eq!(mapped().await, [(MAKER, 1), (READER, 1)]);
    // A window keeps the mapping, also on a thread without a runtime.
    let window = content(&third);
    drop(third);
    std::thread::spawn(move || assert_eq!(*window, *pattern(1, window.len() as u64))).join().unwrap();
    test.until(|it| it.objects[0].mapped == [(MAKER, 1)]).await;
    drop(own);
    test.until(|it| it.objects.is_empty() && it.memory == 0).await;
}

#[tokio::test]
async fn an_object_outlives_its_maker() {
    let test = TestStore::with_budget(64 * MIB);
    let maker = test.link(MAKER);
    maker.store(object(1), writer_of(1, MIB)).await.unwrap();
    maker.store(object(2), writer_of(2, MIB)).await.unwrap();
    let mapping = maker.read(object(2)).await.unwrap();
    test.until(|it| it.mapped_bytes() == MIB).await;
    drop((maker, mapping));
    test.until(|it| it.mapped_bytes() == 0).await;
    test.store.forget(MAKER, [object(1)]);
    let reader = test.link(READER);
    assert!(is_intact(1, &reader.read(object(1)).await.unwrap()));
    assert!(matches!(reader.read(object(2)).await, Err(CallError::ObjectLost(_))));
    assert_eq!(test.bytes().await.0, MIB);
}

#[tokio::test]
async fn a_store_that_is_given_up_leaves_nothing() {
    let test = TestStore::with_budget(2 * MIB);
    let (maker, reader) = (test.link(MAKER), test.link(READER));
    maker.store(object(1), writer_of(1, 2 * MIB)).await.unwrap();
    let mapping = reader.read(object(1)).await.unwrap();
    {
        let mut waiting = pin!(maker.store(object(2), writer_of(2, MIB)));
        assert!(poll!(&mut waiting).is_pending());
        let figures = test
            .until(|it| {
                assert!(it.memory <= 2 * MIB);
                it.objects.len() == 2
            })
            .await;
        assert_eq!(figures.objects[1].place, None);
        assert_eq!(figures.objects[0].place, Some(ObjectPlace::Memory));
    }
    test.until(|it| it.objects.len() == 1).await;
    drop(mapping);
    // A read that nobody waits for any more is not counted for ever.
    maker.store(object(3), writer_of(3, 2 * MIB)).await.unwrap();
    assert!(poll!(pin!(reader.read(object(1)))).is_pending());
    test.until(|it| it.mapped_bytes() == 0 && it.disk == 2 * MIB).await;
    assert!(is_intact(1, &reader.read(object(1)).await.unwrap()));
}

#[tokio::test]
async fn a_first_use_that_is_given_up_does_no_harm() {
    let test = TestStore::with_budget(MIB);
    let maker = test.link(MAKER);
    assert!(poll!(pin!(maker.store(object(1), writer_of(1, MIB)))).is_pending());
    maker.store(object(2), writer_of(2, MIB)).await.unwrap();
    assert!(is_intact(2, &maker.read(object(2)).await.unwrap()));
}

#[tokio::test]
async fn an_object_is_stored_once() {
    let test = TestStore::with_budget(64 * MIB);
    let maker = test.link(MAKER);
    maker.store(object(1), writer_of(1, MIB)).await.unwrap();
    let again = maker.store(object(1), writer_of(2, MIB)).await;
    assert_eq!(again, Err(CallError::Refused(format!("object {} is there already", object(1)))));
    assert!(is_intact(1, &maker.read(object(1)).await.unwrap()));
}

#[tokio::test]
async fn an_application_without_large_objects_opens_nothing() {
    let test = TestStore::with_budget(MIB);
    let link = test.link(MAKER);
    test.store.figures().await.unwrap();
    assert!(format!("{link:?}").contains("OnceCell { value: None }"), "{link:?}");
}

#[tokio::test]
async fn makers_and_readers_go_on_with_the_next_store() {
    let test = TestStore::with_budget(MIB);
    let (maker, reader) = (test.link(MAKER), test.link(READER));
    maker.store(object(1), writer_of(1, MIB)).await.unwrap();
    let mapping = reader.read(object(1)).await.unwrap();
    let lost: ObjectId = object(1);
    let mut waiting = pin!(maker.store(object(2), writer_of(2, MIB)));
    let end = async {
        test.until(|it| it.objects.len() == 2).await;
        let TestStore { store, directory, folder } = test;
        drop(store);
        assert!(is_intact(1, &mapping), "what is mapped stays");
        assert!(is_intact(1, &reader.read(lost).await.unwrap()), "and can be read");
        (directory, folder)
    };
    let (directory, folder) = match select(&mut waiting, pin!(end)).await {
        Either::Left((stored, _)) => panic!("there is no store: {stored:?}"),
        Either::Right((kept, _)) => kept,
    };
    drop(mapping);
    let next = async {
        sleep(Duration::from_millis(300)).await;
        let (told, mut words) = unbounded_channel();
        let spill_directory = folder.path().to_owned();
        let settings = StoreSettings { budget: MIB, spill_directory, patience: ROOM_PATIENCE };
        let next = TestStore::start(&directory, settings, StoreOutlets { told, connector: nobody() });
        assert!(matches!(words.recv().await, Some(FromStore::Wants { object }) if object == lost));
        next.obey(ToStore::Lost { object: lost, error: CallError::ObjectLost("it is gone".into()) });
        next
    };
    let (stored, read, _next) = futures::join!(waiting, maker.read(lost), next);
    stored.unwrap();
    assert_eq!(read.map(drop), Err(CallError::ObjectLost("it is gone".into())));
    assert!(is_intact(2, &reader.read(object(2)).await.unwrap()));
    maker.store(object(3), writer_of(3, MIB)).await.unwrap();
}

#[tokio::test]
async fn a_missing_store_is_told_and_looked_for_again() {
    let test = TestStore::with_budget(MIB);
    let socket = test.folder.path().join("store");
    let (elsewhere, directory) = (test.folder.path().join("elsewhere"), Arc::clone(&test.directory));
    std::fs::rename(&socket, &elsewhere).unwrap();
    let link = StoreLink::new(directory, SECRET, MAKER, ROOT);
    let missing = link.store(object(1), writer_of(1, MIB)).await;
    let Err(CallError::Refused(text)) = missing else { panic!("{missing:?}") };
    assert!(text.starts_with("there is no store of objects on this node: "), "{text}");
    std::fs::rename(&elsewhere, &socket).unwrap();
    link.store(object(1), writer_of(1, MIB)).await.unwrap();
}

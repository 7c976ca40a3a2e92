//! What happens when memory is full.

use std::time::Duration;

use cohabit_application_core::CallError;
use cohabit_memory::ObjectWriter;
use futures::future::try_join_all;

use super::kit::{MAKER, MIB, READER, TestStore, full, is_intact, object, writer_of};

const BUDGET: u64 = 64 * MIB;
const SIZE: u64 = 16 * MIB;

#[tokio::test]
async fn a_full_store_spills() {
    let test = TestStore::with_budget(BUDGET);
    let (maker, reader) = (test.link(MAKER), test.link(READER));
    for number in 1..=16 {
        maker.store(object(number), writer_of(number, SIZE)).await.unwrap();
    }
    assert_eq!(test.bytes().await, (BUDGET, 192 * MIB));
    let names = std::fs::read_dir(test.folder.path()).unwrap().count();
    assert_eq!(names, 1, "the socket alone has a name");
    for number in 1..=16 {
        let mapping = reader.read(object(number)).await.unwrap();
        assert!(is_intact(number, &mapping), "object {number}");
    }
    test.until(|it| (it.memory, it.disk, it.mapped_bytes()) == (BUDGET, 192 * MIB, 0)).await;
    (1..=16).for_each(|number| test.store.free(object(number)));
    assert_eq!(test.bytes().await, (0, 0));
    let lost = reader.read(object(1)).await.unwrap_err();
    assert_eq!(lost, CallError::ObjectLost(format!("object {}: the object is not on this node", object(1))));
}

#[tokio::test]
async fn many_that_store_and_read_at_once_all_get_room() {
    let test = TestStore::with_budget(8 * MIB);
    let (maker, reader) = (test.link(MAKER), test.link(READER));
    let store = |number| maker.store(object(number), writer_of(number, MIB));
    try_join_all((1..=24).map(store)).await.unwrap();
    let read = async |number| {
        let mapping = reader.read(object(number)).await?;
        assert!(is_intact(number, &mapping), "object {number}");
        Ok::<(), CallError>(())
    };
    try_join_all((1..=24).map(read)).await.unwrap();
    test.until(|it| it.memory + it.disk == 24 * MIB && it.mapped_bytes() == 0).await;
}

#[tokio::test]
async fn room_that_never_comes_is_told() {
    let test = TestStore::new(2 * MIB, Duration::from_millis(500));
    let (maker, reader) = (test.link(MAKER), test.link(READER));
    maker.store(object(1), writer_of(1, 2 * MIB)).await.unwrap();
    let mapping = reader.read(object(1)).await.unwrap();
    let refused = full(maker.store(object(2), writer_of(2, MIB)).await);
    assert_eq!(
        refused,
        "there was none within 500ms; of 2 MiB of memory for objects, 2 MiB hold 1 objects, of which processes map 2 MiB; \
         0 objects with 0 KiB are on disk: drop references and values that are no longer needed, or raise object_memory \
         of #[cohabit::main]"
    );
    drop(mapping);
    maker.store(object(2), writer_of(2, MIB)).await.unwrap();
    let mapping = reader.read(object(2)).await.unwrap();
    let refused = reader.read(object(1)).await.map(drop);
    assert!(full(refused).contains("1 objects with 2 MiB are on disk"));
    drop(mapping);
    assert!(is_intact(1, &reader.read(object(1)).await.unwrap()));
}

#[tokio::test]
async fn an_object_above_the_budget_is_refused_at_once() {
    let test = TestStore::with_budget(MIB);
    let refused = full(test.link(MAKER).store(object(1), writer_of(1, MIB + 1)).await);
    assert_eq!(
        refused,
        "it has 2 MiB, and all objects of this node may have 1 MiB: raise object_memory of #[cohabit::main]"
    );
    test.until(|it| it.objects.is_empty()).await;
}

#[tokio::test]
async fn a_disk_that_fails_is_told() {
    let test = TestStore::new(2 * MIB, Duration::from_millis(20));
    // O_TMPFILE needs a directory that is there.
    let spills = test.folder.path().display().to_string();
    let maker = test.link(MAKER);
    maker.store(object(1), writer_of(1, 2 * MIB)).await.unwrap();
    test.folder.close().unwrap();
    let writer: ObjectWriter = writer_of(2, MIB);
    let refused = full(maker.store(object(2), writer).await);
    let cause = "cannot create an unnamed file (O_TMPFILE) to spill an object to";
    assert!(refused.contains(&format!("cannot spill to {spills}: {cause}")), "{refused}");
}

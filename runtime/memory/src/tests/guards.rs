//! Mappings tell when they end, and can be found without being kept.

use std::sync::Arc;

use super::kit::{pattern, sealed};
use crate::{FreshMemory, MemoryError, ObjectWriter};

#[test]
fn a_guard_is_dropped_with_the_last_clone_of_its_mapping() {
    let (bytes, guard) = (pattern(10_000), Arc::new(()));
    let mapping = sealed(&bytes).map_with(Arc::clone(&guard)).unwrap();
    let weak = mapping.downgrade();
    let other = weak.upgrade().unwrap();
    assert_eq!(other.as_ptr(), mapping.as_ptr());
    drop(mapping);
    assert_eq!((Arc::strong_count(&guard), &*other), (2, &*bytes));
    drop(other);
    assert_eq!((Arc::strong_count(&guard), weak.upgrade().is_none()), (1, true));
}

#[test]
fn memory_is_an_object_once_it_is_sealed_elsewhere() {
    let writer = ObjectWriter::new("text").unwrap();
    let allocate = || {
        let memory = FreshMemory::allocate(writer.bytes()).unwrap();
        let fd = std::os::fd::AsFd::as_fd(&memory).try_clone_to_owned().unwrap();
        (memory, FreshMemory::from_fd(fd, writer.bytes()).unwrap())
    };
    let (own, given) = allocate();
    // Whoever fills it may do so on another thread.
    std::thread::scope(|scope| drop(scope.spawn(|| writer.write(given).unwrap())));
    assert_eq!(own.into_sealed().unwrap().bytes(), writer.bytes());
    let (own, given) = allocate();
    assert!(matches!(own.into_sealed(), Err(MemoryError::WrongSeals { .. })));
    drop(given);
}

//! What is sealed cannot be changed by any means of the kernel, and what is not sealed is refused.
#![expect(unsafe_code, reason = "mappings and writes to memory that must fail")]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, copy_file_range, fallocate, fcntl_add_seals, fcntl_get_seals,
    ftruncate, memfd_create, sendfile,
};
use rustix::io::{Errno, pwrite, write};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mprotect, munmap};

use super::kit::{foreign_memfd, pattern, sealed};
use crate::{FreshMemory, MAX_OBJECT, MemoryError, SealedMemory};

const PAGE: usize = 4096;
const ALL: SealFlags =
    SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::WRITE).union(SealFlags::SEAL);

/// A writable shared mapping of a file.
fn writable(fd: impl AsFd, length: usize) -> Result<*mut u8, Errno> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an unused place.
    unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, fd, 0) }.map(<*mut _>::cast)
}

#[test]
fn sealed_memory_cannot_be_written_by_any_means_of_the_kernel() {
    let bytes = pattern(4 * PAGE);
    let memory = sealed(&bytes);
    let mapping = memory.map().unwrap();
    assert_eq!(write(&memory, b"x"), Err(Errno::PERM));
    assert_eq!(pwrite(&memory, b"x", 5), Err(Errno::PERM));
    assert_eq!(writable(&memory, PAGE), Err(Errno::PERM));
    assert_eq!(ftruncate(&memory, PAGE as u64), Err(Errno::PERM));
    assert_eq!(ftruncate(&memory, 5 * PAGE as u64), Err(Errno::PERM));
    assert_eq!(ftruncate(&memory, 0), Err(Errno::PERM));
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&memory, hole, 0, PAGE as u64), Err(Errno::PERM));
    assert_eq!(fallocate(&memory, FallocateFlags::empty(), 0, 5 * PAGE as u64), Err(Errno::PERM));
    let source = File::open("/proc/self/exe").unwrap();
    assert!(sendfile(&memory, &source, None, 10).is_err());
    assert!(copy_file_range(&source, None, &memory, None, 10).is_err());
    assert_eq!(fcntl_add_seals(&memory, SealFlags::FUTURE_WRITE), Err(Errno::PERM));
    // Another descriptor of the same memory, opened anew.
    let path = format!("/proc/self/fd/{}", memory.as_fd().as_raw_fd());
    let again = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    assert_eq!(Errno::from_io_error(&again.write_at(b"x", 0).unwrap_err()), Some(Errno::PERM));
    assert_eq!(writable(&again, PAGE), Err(Errno::PERM));
    assert!(OpenOptions::new().write(true).truncate(true).open(&path).is_err());
    assert_eq!(&*mapping, bytes);
    assert_eq!(fcntl_get_seals(&memory).unwrap().difference(SealFlags::EXEC), ALL);
}

#[test]
fn a_mapping_cannot_be_made_writable_for_others() {
    let bytes = pattern(2 * PAGE);
    let memory = sealed(&bytes);
    let (one, other) = (memory.map().unwrap(), memory.map().unwrap());
    let start = one.as_ptr().cast_mut();
    // SAFETY: a change of access that is refused, or that makes a private copy of what is then written.
    let changed = unsafe { mprotect(start.cast(), PAGE, MprotectFlags::READ | MprotectFlags::WRITE) };
    // SAFETY: a hole that is refused.
    let removed = unsafe { madvise(start.cast(), PAGE, Advice::LinuxRemove) };
    assert!(removed.is_err());
    // Where the kernel maps sealed memory as shared, the process cannot even change its own view.
    let own_memory = OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    let written = own_memory.write_at(b"xxxx", start as u64);
    if changed.is_err() {
        assert!(written.is_err());
        assert_eq!(&*one, bytes);
    }
    assert_eq!(&*other, bytes);
}

#[test]
fn memory_is_sealed_only_when_no_writable_mapping_is_left() {
    let memory = FreshMemory::allocate(PAGE as u64).unwrap();
    let earlier = writable(&memory, PAGE).unwrap();
    let second = memory.as_fd().try_clone_to_owned().unwrap();
    assert!(matches!(memory.seal(), Err(MemoryError::StillWritable)));
    // SAFETY: the mapping is this page, and nothing borrows it.
    unsafe { earlier.write(7) };
    // SAFETY: as above.
    unsafe { munmap(earlier.cast(), PAGE) }.unwrap();
    let sealed = FreshMemory::from_fd(second, PAGE as u64).unwrap().seal().unwrap();
    assert_eq!(sealed.map().unwrap()[..2], [7, 0]);
}

#[test]
fn fresh_memory_keeps_its_size_and_is_written_within_it() {
    let memory = FreshMemory::allocate(100).unwrap();
    assert_eq!(ftruncate(&memory, 50), Err(Errno::PERM));
    assert_eq!(ftruncate(&memory, 200), Err(Errno::PERM));
    memory.write_at(98, b"xy").unwrap();
    assert!(matches!(memory.write_at(99, b"xy"), Err(MemoryError::WrongSize { stated: 101, found: 100 })));
    assert!(matches!(memory.write_at(u64::MAX, b"xy"), Err(MemoryError::WrongSize { found: 100, .. })));
    let mapping = memory.seal().unwrap().map().unwrap();
    assert_eq!((mapping.len(), &mapping[97..]), (100, &b"\0xy"[..]));
}

#[test]
fn reserved_memory_is_sealed_only_when_all_of_it_was_written() {
    let bytes = 3 * PAGE as u64;
    let memory = FreshMemory::reserve(bytes).unwrap();
    assert_eq!(ftruncate(&memory, bytes + 1), Err(Errno::PERM));
    memory.write_at(0, &[1; PAGE]).unwrap();
    memory.write_at(2 * PAGE as u64, &[3; PAGE]).unwrap();
    let second = memory.as_fd().try_clone_to_owned().unwrap();
    assert!(matches!(memory.seal(), Err(MemoryError::Sparse { .. })));
    assert!(SealedMemory::from_fd(second, bytes).is_err(), "a page is missing");
    let memory = FreshMemory::reserve(bytes).unwrap();
    (0..3).for_each(|page| memory.write_at(page * PAGE as u64, &[2; PAGE]).unwrap());
    assert_eq!(memory.seal().unwrap().map().unwrap()[..], [2; 3 * PAGE]);
    assert_eq!(FreshMemory::reserve(0).unwrap().seal().unwrap().bytes(), 0);
}

#[test]
fn a_descriptor_with_other_seals_is_refused() {
    let (shrink, grow, write) = (SealFlags::SHRINK, SealFlags::GROW, SealFlags::WRITE);
    let halves = [
        SealFlags::empty(),
        shrink | grow,
        shrink | grow | write,
        shrink | grow | SealFlags::SEAL,
        shrink | write | SealFlags::SEAL,
        grow | write | SealFlags::SEAL,
        shrink | grow | SealFlags::FUTURE_WRITE | SealFlags::SEAL,
    ];
    for seals in halves {
        let fd = foreign_memfd(PAGE as u64);
        fallocate(&fd, FallocateFlags::empty(), 0, PAGE as u64).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        let refused = SealedMemory::from_fd(fd, PAGE as u64);
        assert!(matches!(refused, Err(MemoryError::WrongSeals { .. })), "{seals:?}: {refused:?}");
    }
    let sealed: OwnedFd = sealed(&[7; 10]).as_fd().try_clone_to_owned().unwrap();
    let refused = FreshMemory::from_fd(sealed, 10);
    assert!(matches!(refused, Err(MemoryError::WrongSeals { .. })), "it is not fresh any more");
}

#[test]
fn a_descriptor_of_something_else_is_refused() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"four").unwrap();
    let on_disk = SealedMemory::from_fd(file.into(), 4);
    assert!(matches!(on_disk, Err(MemoryError::NotSealable | MemoryError::WrongSeals { .. })), "{on_disk:?}");
    let named = tempfile::tempfile_in("/dev/shm").unwrap();
    let named = SealedMemory::from_fd(named.into(), 0);
    assert!(matches!(named, Err(MemoryError::NotSealable | MemoryError::WrongSeals { .. })), "{named:?}");
    let null = SealedMemory::from_fd(File::open("/dev/null").unwrap().into(), 0);
    assert!(matches!(null, Err(MemoryError::NotSealable)), "{null:?}");
    let unsealable: OwnedFd = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    let unsealable = SealedMemory::from_fd(unsealable, 0);
    assert!(matches!(unsealable, Err(MemoryError::WrongSeals { .. })), "{unsealable:?}");
}

#[test]
fn a_wrong_size_and_missing_pages_are_refused() {
    let fd = || sealed(&[7; 100]).as_fd().try_clone_to_owned().unwrap();
    for stated in [0, 99, 101, u64::MAX] {
        let refused = SealedMemory::from_fd(fd(), stated);
        assert!(matches!(refused, Err(MemoryError::WrongSize { found: 100, .. })), "{refused:?}");
    }
    assert_eq!(SealedMemory::from_fd(fd(), 100).unwrap().bytes(), 100);
    let sparse = foreign_memfd(3 * PAGE as u64);
    pwrite(&sparse, b"one page", 0).unwrap();
    fcntl_add_seals(&sparse, ALL).unwrap();
    let refused = SealedMemory::from_fd(sparse, 3 * PAGE as u64);
    assert!(matches!(refused, Err(MemoryError::Sparse { bytes: 12_288, allocated: 4096 })), "{refused:?}");
}

#[test]
fn no_bytes_are_memory_too() {
    let memory = FreshMemory::allocate(0).unwrap();
    memory.write_at(0, &[]).unwrap();
    let mapping = memory.seal().unwrap().map().unwrap();
    assert_eq!((&*mapping, &*mapping.clone()), (&[][..], &[][..]));
}

#[test]
fn too_much_is_refused_with_the_reason() {
    let refused = FreshMemory::allocate(MAX_OBJECT + 1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "an object of 1099511627777 bytes is larger than 1099511627776 bytes, the most that Cohabit allows"
    );
    for errno in [Errno::NOMEM, Errno::NOSPC] {
        assert!(matches!(MemoryError::allocation(errno, 5), MemoryError::NoMemory { bytes: 5, .. }));
    }
}

#[test]
fn a_mapping_outlives_its_descriptor_and_is_shared_by_threads() {
    let bytes = pattern(3 * PAGE + 1);
    let mapping = sealed(&bytes).map().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let mapping = mapping.clone();
            std::thread::spawn(move || mapping.to_vec())
        })
        .collect();
    drop(mapping);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), bytes);
    }
}

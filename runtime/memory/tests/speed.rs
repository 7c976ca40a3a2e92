//! How fast objects are made and read, each beside its floor: what plain code takes for the same bytes. Run
//! by hand, in release mode, with 3 GiB of free memory:
//!
//! ```text
//! cargo test --release -p cohabit-memory --test speed -- --ignored --nocapture
//! ```
#![expect(unsafe_code, reason = "the floors are plain mappings")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on ends here")]

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::ptr;
use std::time::{Duration, Instant};

use cohabit_memory::{Buffer, FreshMemory, ObjectWriter, SpillFile, read_object, write_object};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

const GIB: usize = 1 << 30;
const ROUNDS: usize = 5;

/// How long it takes, without the time to drop what it makes.
fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begin = Instant::now();
    let made = black_box(work());
    (begin.elapsed(), made)
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Plain code: copies bytes into fresh shared memory through a mapping.
fn copy_into_shared_memory(bytes: &[u8]) -> OwnedFd {
    let fd = memfd_create("floor", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&fd, bytes.len() as u64).unwrap();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an unused place; the copy stays in it, and nothing refers to it afterwards.
    unsafe {
        let start = mmap(ptr::null_mut(), bytes.len(), access, MapFlags::SHARED, &fd, 0).unwrap();
        ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len());
        munmap(start, bytes.len()).unwrap();
    }
    fd
}

/// The fastest plain code: one call that copies, without a mapping.
fn write_shared_memory(bytes: &[u8]) -> OwnedFd {
    let mut file = File::from(memfd_create("floor", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    file.into()
}

/// Plain code: maps shared memory for reading.
fn map_only(fd: &OwnedFd) {
    // SAFETY: the kernel chooses an unused place, and nothing refers to it afterwards.
    unsafe {
        let start = mmap(ptr::null_mut(), GIB, ProtFlags::READ, MapFlags::SHARED, fd, 0).unwrap();
        black_box(start);
        munmap(start, GIB).unwrap();
    }
}

/// Reads every 64 bytes.
fn touch(bytes: &[u8]) -> u64 {
    bytes.iter().step_by(64).map(|it| u64::from(*it)).sum()
}

#[test]
#[ignore = "a measurement of 1 GiB"]
fn objects_of_one_gibibyte() {
    let value = ("model".to_owned(), Buffer::from(vec![7u8; GIB]));
    let [
        mut copies,
        mut plain_writes,
        mut puts,
        mut allocations,
        mut writes,
        mut maps,
        mut reads,
        mut touches,
    ] = [const { Vec::new() }; 8];
    for _ in 0..ROUNDS {
        let (took, floor) = time(|| copy_into_shared_memory(&value.1));
        copies.push(took);
        maps.push(time(|| map_only(&floor)).0);
        drop(floor);
        plain_writes.push(time(|| write_shared_memory(&value.1)).0);
        let (took, object) = time(|| write_object(&value).unwrap());
        puts.push(took);
        let (took, read) = time(|| read_object::<(String, Buffer<u8>)>(&object.map().unwrap()).unwrap());
        reads.push(took);
        touches.push(time(|| touch(&read.1)).0);
        drop((read, object));
        let writer = ObjectWriter::new(&value).unwrap();
        let (took, memory) = time(|| FreshMemory::allocate(writer.bytes()).unwrap());
        allocations.push(took);
        writes.push(time(|| writer.write(memory).unwrap()).0);
    }
    let [copy, plain, put] = [copies, plain_writes, puts].map(median);
    println!("put 1 GiB              {put:.0} ms");
    println!("  plain copy, mapping  {copy:.0} ms: put is {:.2} times as fast", copy / put);
    println!("  plain write          {plain:.0} ms: put is {:.2} times as fast", plain / put);
    let [allocate, write] = [allocations, writes].map(median);
    println!("  of which             allocate {allocate:.0} ms, write and seal {write:.0} ms");
    println!("map, check and decode  {:.3} ms, mapping alone {:.3} ms", median(reads), median(maps));
    println!("first read             {:.0} ms", median(touches));
}

#[test]
#[ignore = "a measurement"]
fn objects_of_64_kibibytes() {
    let value = Buffer::from(vec![7u8; 64 << 10]);
    let [mut copies, mut puts, mut reads] = [const { Vec::new() }; 3];
    for _ in 0..2000 {
        copies.push(time(|| copy_into_shared_memory(&value)).0);
        let (took, object) = time(|| write_object(&value).unwrap());
        puts.push(took);
        reads.push(time(|| read_object::<Buffer<u8>>(&object.map().unwrap()).unwrap()).0);
    }
    let [copy, put, read] = [copies, puts, reads].map(|times| median(times) * 1e3);
    println!("put 64 KiB             {put:.0} us, plain copy {copy:.0} us; read {read:.0} us");
}

#[test]
#[ignore = "a measurement of 1 GiB"]
fn spilling_one_gibibyte() {
    let folder = tempfile::tempdir().unwrap();
    let value = Buffer::from(vec![7u8; GIB]);
    let object = write_object(&value).unwrap();
    let path = folder.path().join("plain");
    let (floor, ()) = time(|| std::fs::write(&path, &*value).unwrap());
    std::fs::remove_file(&path).unwrap();
    drop(value);
    let (took, spilled) = time(|| SpillFile::write(&object, folder.path()).unwrap());
    let (back, _) = time(|| spilled.read().unwrap());
    let [took, floor, back] = [took, floor, back].map(|it| it.as_millis());
    println!("spill 1 GiB            {took} ms, plain write {floor} ms; bring back {back} ms");
}

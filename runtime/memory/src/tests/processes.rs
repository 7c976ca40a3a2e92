//! Objects between processes, also of dead ones. The other process is this test program, with one test alone.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::kit::{digest, pattern};
use crate::{Buffer, SealedMemory, SpillFile, read_object, receive_message, send_message, write_object};

const MIB: usize = 1 << 20;

/// Where a test process may spill.
const FOLDER: &str = "COHABIT_TEST_SPILL_FOLDER";

fn test_process(test: &str, input: Stdio, folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "--test-threads=1", test])
        .env(FOLDER, folder)
        .stdin(input)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs an ignored test in a process of its own, where it alone has files.
pub(super) fn in_a_process_of_its_own(test: &str) {
    let status = test_process(test, Stdio::null(), Path::new("/")).wait().unwrap();
    assert!(status.success(), "{test}: {status}");
}

/// The number of open files of this process.
pub(super) fn open_fds() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The test process's end of the socket to the test that started it.
fn line_to_parent() -> UnixStream {
    std::io::stdin().as_fd().try_clone_to_owned().unwrap().into()
}

/// Starts a test process that is connected with this one.
fn connected(test: &str, folder: &Path) -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (test_process(test, Stdio::from(OwnedFd::from(theirs)), folder), ours)
}

#[test]
fn an_object_outlives_its_maker() {
    let (mut maker, line) = connected("tests::processes::making_an_object", Path::new("/"));
    let mut size = [0; 8];
    let received = receive_message(&line, &mut size).unwrap();
    maker.kill().unwrap();
    maker.wait().unwrap();
    let object = SealedMemory::from_fd(received.fd.unwrap(), u64::from_le_bytes(size)).unwrap();
    let bytes: Buffer<u8> = read_object(&object.map().unwrap()).unwrap();
    assert_eq!(digest(&bytes), digest(&pattern(MIB)));
}

#[test]
#[ignore = "it waits to be killed: another test starts it"]
fn making_an_object() {
    let object = write_object(&Buffer::from(pattern(MIB))).unwrap();
    let mut line = line_to_parent();
    send_message(&line, &object.bytes().to_le_bytes(), Some(object.as_fd())).unwrap();
    line.read_exact(&mut [0]).unwrap();
}

#[test]
fn kill_9_leaves_nothing() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (mut holder, mut line) =
        connected("tests::processes::holding_memory_and_a_spill_file", folder.path());
    line.read_exact(&mut [0]).unwrap();
    let names = || fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names(), 0, "a spill file has no name");
    let files = open_files(holder.id());
    let starting_with = |prefix: &str| files.iter().filter(|it| it.starts_with(prefix)).count();
    assert_eq!(starting_with("/memfd:cohabit-object"), 1, "{files:?}");
    assert_eq!(starting_with(folder.path().to_str().unwrap()), 1, "{files:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(names(), 0);
    let shm = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    assert!(shm.into_iter().all(|name| !name.to_string_lossy().starts_with("cohabit")));
}

/// What the descriptors of a process refer to.
fn open_files(process: u32) -> Vec<String> {
    let fds = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let targets = fds.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    targets.map(|it| it.to_string_lossy().into_owned()).collect()
}

#[test]
#[ignore = "it waits to be killed: another test starts it"]
fn holding_memory_and_a_spill_file() {
    let object = write_object(&Buffer::from(vec![7u8; 8 * MIB])).unwrap();
    let folder = std::env::var_os(FOLDER).unwrap();
    let spilled = SpillFile::write(&object, Path::new(&folder)).unwrap();
    let mut line = line_to_parent();
    send_message(&line, b"x", None).unwrap();
    line.read_exact(&mut [0]).unwrap();
    drop((object, spilled));
}

#[test]
fn mappings_and_memory_leave_no_descriptor() {
    in_a_process_of_its_own("tests::processes::making_and_dropping_objects");
}

#[test]
#[ignore = "it counts the descriptors of its process: another test starts it in its own"]
fn making_and_dropping_objects() {
    let before = open_fds();
    let read: Vec<Buffer<u8>> = (0..100)
        .map(|_| {
            read_object(&write_object(&Buffer::from(pattern(MIB / 16))).unwrap().map().unwrap()).unwrap()
        })
        .collect();
    assert_eq!(open_fds(), before, "a mapping needs no descriptor");
    let mapped = || {
        let mut maps = String::new();
        File::open("/proc/self/maps").unwrap().read_to_string(&mut maps).unwrap();
        maps.lines().filter(|line| line.contains("/memfd:cohabit-object")).count()
    };
    assert_eq!(mapped(), 100);
    assert!(read.iter().all(|it| **it == *pattern(MIB / 16)));
    drop(read);
    assert_eq!((mapped(), open_fds()), (0, before));
}

#[test]
fn a_limit_on_file_sizes_is_told() {
    let (mut limited, mut line) = connected("tests::processes::allocating_above_a_limit", Path::new("/"));
    assert_eq!(line.read(&mut [0]).map_err(|it| it.kind()), Ok::<_, ErrorKind>(0));
    assert!(limited.wait().unwrap().success());
}

#[test]
#[ignore = "it limits the files of its process: another test starts it in its own"]
fn allocating_above_a_limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Fsize, Rlimit { current: Some(MIB as u64), maximum: None }).unwrap();
    let refused = crate::FreshMemory::allocate(MIB as u64 + 1).unwrap_err().to_string();
    assert!(refused.ends_with("the most that the limit on file sizes (ulimit -f) allows"), "{refused}");
    crate::FreshMemory::allocate(MIB as u64).unwrap();
}

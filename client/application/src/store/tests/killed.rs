//! Processes that are killed. The other processes are this test program, with one test alone.

use std::ffi::OsStr;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::BytesMut;
use cohabit_application_core::{StoreReply, StoreRequest};
use cohabit_memory::FreshMemory;

use super::super::frame_stream::{FrameReader, send_frame};
use super::kit::{MAKER, MIB, READER, SECRET, TestStore, connect, is_intact, object, open_files, writer_of};
use crate::transport::SocketDirectory;

/// Where the store of a test process listens.
const FOLDER: &str = "COHABIT_TEST_STORE_FOLDER";

/// What a test process prints when it waits to be killed.
pub(super) const READY: u8 = b'~';

fn test_process(test: &str, folder: &Path) -> Child {
    test_process_with(test, FOLDER, folder.as_os_str())
}

/// Another process of this program, with a variable for this test.
pub(super) fn test_process_with(test: &str, variable: &str, value: &OsStr) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "--test-threads=1", test])
        .env(variable, value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(super) fn wait_until_ready(process: &mut Child) {
    let output = process.stdout.as_mut().unwrap();
    assert!(BufReader::new(output).bytes().any(|byte| byte.unwrap() == READY), "it has ended");
}

#[test]
fn kill_9_leaves_nothing() {
    run_alone("store::tests::killed::serving_makers_that_are_killed");
}

/// Runs an ignored test in a process of its own.
pub(super) fn run_alone(test: &str) {
    let mut server = test_process(test, Path::new("/"));
    let mut output = String::new();
    server.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    let status = server.wait().unwrap();
    assert!(status.success(), "{status}: {output}");
}

#[tokio::test]
#[ignore = "it counts the descriptors of its process: another test starts it in its own"]
async fn serving_makers_that_are_killed() {
    let test = TestStore::with_budget(4 * MIB);
    let link = test.link(READER);
    let own = cohabit_application_core::ObjectId { maker: READER, number: 1 };
    link.store(own, writer_of(1, MIB)).await.unwrap();
    for number in 1..=3 {
        let mut maker = test_process("store::tests::killed::holding_unfilled_memory", test.folder.path());
        wait_until_ready(&mut maker);
        // It has filled object 1, maps it, fills object 2, and waits for the room of object 3.
        let figures = test.until(|it| it.objects.len() == 4).await;
        assert_eq!((figures.memory, figures.mapped_bytes()), (4 * MIB, MIB), "maker {number}");
        maker.kill().unwrap();
        maker.wait().unwrap();
        test.store.forget(MAKER, []);
        test.until(|it| it.memory + it.disk == MIB && it.objects.len() == 1).await;
        assert!(is_intact(1, &link.read(own).await.unwrap()));
        test.until(|it| it.mapped_bytes() == 0).await;
    }
    test.store.free(own);
    test.until(|it| it.objects.is_empty() && it.memory + it.disk == 0).await;
    // Memory is given back on other threads.
    let folder = test.folder.path().to_str().unwrap().to_owned();
    while !(open_files("/memfd:").is_empty() && open_files(&format!("{folder}/#")).is_empty()) {
        tokio::task::yield_now().await;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("/memfd:"), "{maps}");
}

#[tokio::test]
#[ignore = "it waits to be killed: another test starts it"]
async fn holding_unfilled_memory() {
    let directory = SocketDirectory::open(Path::new(&std::env::var_os(FOLDER).unwrap())).unwrap();
    let stream = connect(&directory, SECRET, MAKER).await;
    let mut frames = FrameReader::new(&stream, BytesMut::new());
    let reserve = |number, bytes| StoreRequest::Reserve { object: object(number), bytes };
    send_frame(&stream, &reserve(1, MIB), None).await.unwrap();
    let reply: StoreReply = frames.next().await.unwrap();
    assert_eq!(reply, StoreReply::Allocated { object: object(1) });
    let memory = FreshMemory::from_fd(frames.descriptor().unwrap(), MIB).unwrap();
    let mapping = writer_of(1, MIB).write(memory).unwrap().map().unwrap();
    send_frame(&stream, &StoreRequest::Filled { object: object(1) }, None).await.unwrap();
    send_frame(&stream, &StoreRequest::Want { object: object(1) }, None).await.unwrap();
    send_frame(&stream, &reserve(2, 2 * MIB), None).await.unwrap();
    send_frame(&stream, &reserve(3, 4 * MIB), None).await.unwrap();
    let mut memories = Vec::new();
    for _ in 0..3 {
        let reply: StoreReply = frames.next().await.unwrap();
        memories.extend(reply.has_descriptor().then(|| frames.descriptor().unwrap()));
    }
    assert_eq!(memories.len(), 2, "sealed memory, and memory to fill");
    std::io::stdout().write_all(&[READY]).unwrap();
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_exact(&mut [0]).unwrap();
    drop((mapping, memories));
}

//! What arrives of what is there, and what is not read.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use cohabit_transfer::{
    ReceiveError, Received, Receiver, Target, TransferEntry, TransferFailure, TransferTask, send,
};
use cohabit_types::{Bytes, COPY_LIMIT, CopyDepth};

use crate::kit::{Kit, limits, path, stream};

fn failure(result: Result<Received, ReceiveError>) -> (TransferFailure, String) {
    let error = result.unwrap_err();
    let ReceiveError::Sender { kind, message } = error else { panic!("{error}") };
    (kind, message)
}

#[test]
fn a_file_arrives_with_its_permissions_and_its_time_but_without_special_bits() {
    let kit = Kit::new();
    let content: Vec<u8> = (0..200_000_u32).map(|number| (number % 251) as u8).collect();
    fs::write(kit.source("tool"), &content).unwrap();
    fs::set_permissions(kit.source("tool"), Permissions::from_mode(0o4750)).unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    File::open(kit.source("tool")).unwrap().set_modified(at).unwrap();
    fs::write(kit.target("tool"), "before").unwrap();
    let received = kit.transfer(&kit.task("tool"), "tool").unwrap();
    assert_eq!((received.files, received.bytes, received.announced), (1, 200_000, 200_000));
    let found = fs::metadata(kit.target("tool")).unwrap();
    assert_eq!((found.mode() & 0o7777, found.modified().unwrap()), (0o750, at));
    assert_eq!(fs::read(kit.target("tool")).unwrap(), content);
    assert_eq!(kit.arrived(), ["tool"]);
}

#[test]
fn a_directory_arrives_with_what_is_in_it_and_joins_what_was_there() {
    let kit = Kit::new();
    fs::create_dir_all(kit.source("out/a/b")).unwrap();
    fs::create_dir(kit.source("out/empty")).unwrap();
    fs::write(kit.source("out/a/b/deep"), "deep").unwrap();
    fs::write(kit.source("out/zero"), "").unwrap();
    symlink("a/b/deep", kit.source("out/inside")).unwrap();
    symlink("../zero", kit.source("out/a/up")).unwrap();
    symlink("/etc/passwd", kit.source("out/outside")).unwrap();
    fs::create_dir_all(kit.target("here/a")).unwrap();
    fs::write(kit.target("here/a/kept"), "kept").unwrap();
    let received = kit.transfer(&kit.task("out"), "here").unwrap();
    assert_eq!((received.files, received.links, received.skipped), (2, 2, 1));
    assert_eq!(received.reasons[0].0, "outside");
    assert_eq!(fs::read_to_string(kit.target("here/inside")).unwrap(), "deep");
    assert_eq!(fs::read_link(kit.target("here/a/up")).unwrap().to_str(), Some("../zero"));
    assert_eq!(fs::read_to_string(kit.target("here/a/kept")).unwrap(), "kept");
    assert!(kit.target("here/empty").is_dir() && !kit.target("here/outside").exists());
    // A second copy replaces links and files.
    assert_eq!(kit.transfer(&kit.task("out/."), "here").unwrap().links, 2);
}

#[test]
fn what_is_missing_forbidden_or_a_directory_is_said() {
    let kit = Kit::new();
    fs::create_dir(kit.source("out")).unwrap();
    symlink("nowhere", kit.source("loose")).unwrap();
    let (kind, said) = failure(kit.transfer(&kit.task("missing"), "x"));
    assert_eq!(kind, TransferFailure::NotFound);
    assert!(said.contains(kit.source("missing").to_str().unwrap()), "{said}");
    assert_eq!(failure(kit.transfer(&kit.task("loose"), "x")).0, TransferFailure::NotFound);
    let file = TransferTask { depth: CopyDepth::File, ..kit.task("out") };
    let (kind, said) = failure(kit.transfer(&file, "x"));
    assert!(kind == TransferFailure::Directory && said.contains("--recursive"), "{said}");
    let nowhere = TransferTask { base: kit.source("none"), ..kit.task("out") };
    assert!(failure(kit.transfer(&nowhere, "x")).1.contains("Give an absolute path"));
    assert_eq!(kit.arrived(), [""; 0]);
}

#[test]
fn the_limit_holds_before_anything_is_sent() {
    let kit = Kit::new();
    fs::create_dir(kit.source("out")).unwrap();
    for name in ["out/one", "out/two"] {
        fs::write(kit.source(name), [0; 600]).unwrap();
    }
    for (path, limit) in [("out", 1_199), ("out/one", 599)] {
        let mut bytes = Vec::new();
        let task = TransferTask { limit: Bytes(limit), ..kit.task(path) };
        send(&task, &mut bytes).unwrap();
        let (kind, said) = failure(kit.receive("x", &bytes));
        assert!(kind == TransferFailure::TooLarge && said.contains("--limit"), "{said}");
        assert!(bytes.len() < 300, "no content");
    }
    let exact = TransferTask { limit: Bytes(1_200), ..kit.task("out") };
    assert_eq!(kit.transfer(&exact, "x").unwrap().bytes, 1_200);
}

#[test]
fn pipes_sockets_and_devices_are_never_opened() {
    let kit = Kit::new();
    fs::create_dir(kit.source("out")).unwrap();
    // To open this one for reading would wait for ever.
    rustix_fifo(&kit.source("out/pipe"));
    let _listener = UnixListener::bind(kit.source("out/socket")).unwrap();
    for (path, what) in [("out/pipe", "a named pipe"), ("out/socket", "a socket"), ("/dev/null", "a device")]
    {
        let (kind, said) = failure(kit.transfer(&kit.task(path), "x"));
        assert!(kind == TransferFailure::SpecialFile && said.contains(what), "{said}");
    }
    symlink("/proc/self/fd", kit.source("fds")).unwrap();
    for path in ["/proc/self/status", "/proc", "/sys", "/dev", "fds", "/dev/stdin"] {
        assert_eq!(failure(kit.transfer(&kit.task(path), "x")).0, TransferFailure::SpecialFile, "{path}");
    }
    let received = kit.transfer(&kit.task("out"), "there").unwrap();
    assert_eq!((received.files, received.skipped), (0, 2));
}

fn rustix_fifo(path: &std::path::Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

#[test]
fn private_directories_are_not_read_whatever_leads_there() {
    let kit = Kit::new();
    fs::create_dir_all(kit.source("state/checkpoints/12/last")).unwrap();
    fs::write(kit.source("state/token"), "secret").unwrap();
    fs::write(kit.source("state/checkpoints/12/last/weights"), "1").unwrap();
    symlink("state", kit.source("way")).unwrap();
    let root = kit.from.path().canonicalize().unwrap();
    let task = |path: &str| TransferTask {
        private: vec![root.join("state")],
        open: vec![root.join("state/checkpoints/12")],
        ..kit.task(path)
    };
    for path in ["state/token", "way/token", "way", "state/checkpoints/12/../../token", "state"] {
        let (kind, said) = failure(kit.transfer(&task(path), "x"));
        assert_eq!(kind, TransferFailure::NotAllowed);
        assert!(said.contains("state directory of the worker"), "{path}: {said}");
    }
    assert_eq!(kit.transfer(&task("state/checkpoints/12"), "own").unwrap().files, 1);
    let all = kit.transfer(&task("."), "all").unwrap();
    assert_eq!((all.files, &*all.reasons[0].0), (0, "state"));
}

#[test]
fn a_file_that_grows_ends_where_it_ended_and_one_that_shrinks_does_not_arrive() {
    /// Changes the file when its first bytes are written, behind the extent and its size.
    struct Change<F: FnMut()>(Vec<u8>, u32, F);
    impl<F: FnMut()> std::io::Write for Change<F> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.1 += 1;
            if self.1 == 3 {
                (self.2)();
            }
            self.0.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let kit = Kit::new();
    let file = kit.source("log");
    let sent = |change: &dyn Fn()| {
        fs::write(&file, vec![b'a'; 100_000]).unwrap();
        let mut output = Change(Vec::new(), 0, change);
        send(&kit.task("log"), &mut output).unwrap();
        output.0
    };
    let grown = sent(&|| {
        let mut log = File::options().append(true).open(&file).unwrap();
        log.write_all(&[b'b'; 10_000]).unwrap();
    });
    let received = kit.receive("log", &grown).unwrap();
    assert_eq!((received.announced, received.bytes), (100_000, 100_000));
    assert_eq!(fs::metadata(&file).unwrap().len(), 110_000);
    assert_eq!(fs::metadata(kit.target("log")).unwrap().len(), 100_000);
    let shrunk = sent(&|| File::options().write(true).open(&file).unwrap().set_len(10).unwrap());
    let received = kit.receive("short", &shrunk).unwrap();
    assert_eq!((received.files, received.skipped), (0, 1));
    assert!(!kit.target("short").exists(), "{:?}", kit.arrived());
}

#[test]
fn one_file_goes_to_a_stream() {
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let output = Shared::default();
    let receiver = || Receiver::new(Target::Stream(Box::new(output.clone())), limits(COPY_LIMIT));
    let file =
        |name: &str| TransferEntry::File { path: path(&[name]), mode: 0, modified: 0, inode: 0, size: 2 };
    let content = TransferEntry::Content(b"hi".to_vec());
    let mut one = receiver();
    one.take(&stream(&[file("a"), content.clone(), TransferEntry::End])).unwrap();
    assert_eq!(one.finish().unwrap().files, 1);
    assert_eq!(*output.0.lock().unwrap(), b"hi");
    assert!(receiver().take(&stream(&[file("a"), content, file("b")])).is_err());
    assert!(receiver().take(&stream(&[TransferEntry::Directory { path: path(&[]), mode: 0 }])).is_err());
    let cut = stream(&[file("a"), TransferEntry::Shrunk]);
    assert!(receiver().take(&cut).unwrap_err().to_string().contains("became shorter"));
}

//! Streams of a node that wants to write elsewhere, or without an end.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use cohabit_transfer::{ReceiveError, Receiver, Target, TransferEntry, TransferPath};
use cohabit_types::Bytes;

use crate::kit::{Kit, limits, path, stream};

fn root() -> TransferEntry {
    TransferEntry::Directory { path: TransferPath::default(), mode: 0o755 }
}

fn directory(names: &[&str]) -> TransferEntry {
    TransferEntry::Directory { path: path(names), mode: 0o755 }
}

fn file(names: &[&str], content: &str) -> [TransferEntry; 2] {
    let size = content.len() as u64;
    let path = path(names);
    [
        TransferEntry::File { path, mode: 0o7777, modified: 0, inode: 0, size },
        TransferEntry::Content(content.into()),
    ]
}

fn link(names: &[&str], target: &str) -> TransferEntry {
    TransferEntry::Link { path: path(names), target: target.into() }
}

#[test]
fn nothing_is_written_through_a_link_that_was_sent() {
    let kit = Kit::new();
    let outside = kit.target("outside");
    fs::create_dir(&outside).unwrap();
    for target in ["../outside", outside.to_str().unwrap(), "."] {
        let through = [
            vec![root(), link(&["way"], target)],
            file(&["way", "x"], "evil").into(),
            vec![TransferEntry::End],
        ];
        assert!(kit.receive("there", &stream(&through.concat())).is_err(), "{target}");
        let replaced =
            [vec![root(), link(&["file"], target)], file(&["file"], "fine").into(), vec![TransferEntry::End]];
        // The file is there first; a link is made at the end, and replaces it.
        kit.receive("there", &stream(&replaced.concat())).unwrap();
        fs::remove_dir_all(kit.target("there")).unwrap();
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(kit.arrived(), ["outside"]);
}

#[test]
fn nothing_is_written_through_a_link_that_was_there() {
    let kit = Kit::new();
    fs::create_dir_all(kit.target("outside")).unwrap();
    fs::create_dir_all(kit.target("there")).unwrap();
    fs::write(kit.target("precious"), "1").unwrap();
    symlink("../outside", kit.target("there/way")).unwrap();
    symlink("../precious", kit.target("there/file")).unwrap();
    let through = [vec![root(), directory(&["way"])], file(&["way", "x"], "evil").into()];
    assert!(kit.receive("there", &stream(&through.concat())).is_err());
    let onto = [vec![root()], file(&["file"], "new").into(), vec![TransferEntry::End]];
    kit.receive("there", &stream(&onto.concat())).unwrap();
    assert_eq!(fs::read_to_string(kit.target("precious")).unwrap(), "1");
    assert_eq!(fs::read_to_string(kit.target("there/file")).unwrap(), "new");
    assert_eq!(fs::read_dir(kit.target("outside")).unwrap().count(), 0);
}

#[test]
fn links_that_lead_out_are_left_out_alone_or_together() {
    let kit = Kit::new();
    let links = [
        link(&["absolute"], "/etc/passwd"),
        link(&["up"], "../x"),
        link(&["d", "up"], "../../x"),
        link(&["d", "self"], ".."),
        link(&["d", "chain"], "self/../../x"),
        link(&["empty"], ""),
        link(&["nul"], "a\0b"),
    ];
    let entries = [vec![root(), directory(&["d"])], links.into(), vec![TransferEntry::End]].concat();
    let received = kit.receive("there", &stream(&entries)).unwrap();
    assert_eq!((received.links, received.skipped), (1, 6), "{:?}", received.reasons);
    assert_eq!(fs::read_link(kit.target("there/d/self")).unwrap().to_str(), Some(".."));
}

#[test]
fn special_bits_and_odd_kinds_cannot_be_sent() {
    let kit = Kit::new();
    let entries = [file(&[], "#!/bin/sh").into(), vec![TransferEntry::End]].concat();
    kit.receive("tool", &stream(&entries)).unwrap();
    assert_eq!(fs::metadata(kit.target("tool")).unwrap().mode() & 0o7000, 0);
    let named = stream(&file(&["x"], "1"));
    let at = named.windows(1).position(|byte| byte == b"x").unwrap();
    for name in [b'/', b'.', 0] {
        let mut bytes = named.clone();
        bytes[at] = name;
        assert!(matches!(kit.receive("there", &bytes), Err(ReceiveError::Invalid(_))), "{name}");
    }
}

#[test]
fn a_file_replaces_no_directory_and_no_special_file() {
    let kit = Kit::new();
    fs::create_dir(kit.target("folder")).unwrap();
    let mode = 0o600.into();
    rustix::fs::mknodat(rustix::fs::CWD, kit.target("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let entries = stream(&[file(&[], "1").into(), vec![TransferEntry::End]].concat());
    assert!(matches!(kit.receive("folder", &entries), Err(ReceiveError::Write { .. })));
    assert!(matches!(kit.receive("pipe", &entries), Err(ReceiveError::Write { .. })));
    fs::write(kit.target("file"), "1").unwrap();
    assert!(
        kit.receive("file", &stream(&[root(), TransferEntry::End])).is_err(),
        "a directory replaces no file"
    );
    assert_eq!(kit.arrived(), ["file", "folder", "pipe"]);
}

#[test]
fn a_stream_that_is_cut_off_leaves_no_part_of_a_file() {
    let kit = Kit::new();
    fs::write(kit.target("model"), "before").unwrap();
    let whole = stream(&[file(&[], "after, which is longer").into(), vec![TransferEntry::End]].concat());
    for length in 0..whole.len() {
        let cut = kit.receive("model", &whole[..length]);
        assert!(matches!(cut, Err(ReceiveError::CutOff)), "{length}");
        assert_eq!(kit.arrived(), ["model"]);
    }
    // The file is whole before the end of the stream is.
    let content = whole.len() - stream(&[TransferEntry::End]).len();
    assert!(fs::read_to_string(kit.target("model")).unwrap().starts_with("after"), "{content}");
    let failed =
        TransferEntry::Failed { kind: cohabit_transfer::TransferFailure::Failed, message: "no disk".into() };
    let [begin, _] = file(&[], "never");
    assert!(matches!(kit.receive("other", &stream(&[begin, failed])), Err(ReceiveError::Sender { .. })));
    assert_eq!(kit.arrived(), ["model"]);
}

#[test]
fn no_more_is_taken_than_was_agreed_and_announced() {
    let kit = Kit::new();
    let receive = |entries: &[TransferEntry]| {
        let mut receiver = Receiver::new(Target::Path(kit.target("x")), limits(Bytes(100)));
        receiver.take(&stream(entries))
    };
    let header = |size| TransferEntry::File {
        path: TransferPath::default(),
        mode: 0o600,
        modified: 0,
        inode: 0,
        size,
    };
    let content = |bytes| TransferEntry::Content(vec![0; bytes]);
    assert!(matches!(
        receive(&[TransferEntry::Extent { files: 1, bytes: 101 }]),
        Err(ReceiveError::TooLarge(_))
    ));
    assert!(matches!(receive(&[header(101)]), Err(ReceiveError::TooLarge(_))));
    assert!(matches!(receive(&[header(u64::MAX)]), Err(ReceiveError::TooLarge(_))));
    assert!(matches!(receive(&[header(60), content(60), header(60)]), Err(ReceiveError::TooLarge(_))));
    for entries in [
        vec![header(5), content(6)],
        vec![header(5), TransferEntry::End],
        vec![content(5)],
        vec![TransferEntry::Shrunk],
        vec![TransferEntry::End, TransferEntry::End],
        vec![header(5), header(5)],
    ] {
        assert!(matches!(receive(&entries), Err(ReceiveError::Invalid(_))), "{entries:?}");
    }
    let endless = vec![TransferEntry::Skipped { path: TransferPath::default(), why: String::new() }; 100_004];
    assert!(matches!(receive(&endless), Err(ReceiveError::Invalid(_))));
}

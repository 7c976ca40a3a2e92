//! What a store promises, with real files.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::hash_of;

const ROOM: StoreLimits = StoreLimits { bytes: Bytes(8 << 20), files: 100 };

fn store(folder: &Path) -> ContentStore {
    ContentStore::open(folder, StoreKind::Durable, ROOM).unwrap()
}

fn piece(content: &[u8], offset: usize, length: usize) -> ContentPiece {
    let bytes = content[offset..offset + length].to_vec();
    ContentPiece { file: hash_of(content), size: content.len() as u64, offset: offset as u64, bytes }
}

fn whole(content: &[u8]) -> ContentPiece {
    piece(content, 0, content.len())
}

/// All that is stored of this content.
fn contents_of(store: &ContentStore, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.open_file(&hash_of(content)).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn files_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let contents: [&[u8]; 3] = [b"abc", b"", b"def"];
    let pieces: Vec<_> = contents.iter().map(|content| whole(content)).collect();
    assert_eq!(store(folder.path()).put(&pieces).unwrap(), [3, 0, 3]);
    let again = store(folder.path());
    for content in contents {
        assert_eq!(contents_of(&again, content), content);
    }
    assert_eq!(again.bytes(), Bytes(6));
    let unknown = hash_of(b"unknown");
    assert_eq!(again.missing(&[hash_of(b"abc"), unknown, hash_of(b"")]), [unknown]);
    assert!(matches!(again.read(&unknown, 0), Err(ContentError::Missing(hash)) if hash == unknown));
    let path = again.path(&hash_of(b"abc"));
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o400);
}

#[test]
fn a_file_arrives_in_pieces_and_answers_tell_where_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..3_000_000_u32).map(|it| it as u8).collect();
    let store = store(folder.path());
    let put = |offset, length| store.put(&[piece(&content, offset, length)]).unwrap()[0];
    assert_eq!(put(0, PIECE_BYTES), PIECE_BYTES as u64);
    assert_eq!(put(0, PIECE_BYTES), PIECE_BYTES as u64, "the same again changes nothing");
    assert_eq!(put(2_500_000, 10), PIECE_BYTES as u64, "one that comes too early is passed over");
    assert_eq!(store.missing(&[hash_of(&content)]).len(), 1, "it is not there before it is complete");
    assert_eq!(put(PIECE_BYTES, PIECE_BYTES), 2 * PIECE_BYTES as u64);
    assert_eq!(put(2 * PIECE_BYTES, content.len() - 2 * PIECE_BYTES), content.len() as u64);
    assert_eq!(put(0, 1), content.len() as u64, "nothing is missing any more");
    assert_eq!(contents_of(&store, &content), content);
    assert_eq!(store.read(&hash_of(&content), 2_999_990).unwrap().bytes, &content[2_999_990..]);
    assert_eq!(store.read(&hash_of(&content), 9_000_000).unwrap().bytes, b"");
    assert_eq!(entries(&folder.path().join(PARTIAL)), 0);
}

#[test]
fn content_that_does_not_have_its_hash_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let wrong = ContentPiece { file: hash_of(b"right"), ..whole(b"wrong") };
    let result = store.put(&[whole(b"good"), wrong]);
    assert!(matches!(result, Err(ContentError::WrongContent(hash)) if hash == hash_of(b"right")));
    assert_eq!(store.missing(&[hash_of(b"good"), hash_of(b"right")]), [hash_of(b"right")]);
    assert_eq!(store.put(&[whole(b"right")]).unwrap(), [5], "it can be sent again");
}

#[test]
fn pieces_outside_their_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let abc = whole(b"abc");
    let long = vec![0; PIECE_BYTES + 1];
    let bad = [
        ContentPiece { size: 2, ..abc.clone() },
        ContentPiece { offset: 1, ..abc.clone() },
        ContentPiece { offset: u64::MAX, ..abc.clone() },
        whole(&long),
    ];
    for piece in bad {
        assert!(matches!(store.put(&[piece]), Err(ContentError::OutOfBounds(_))));
    }
    store.put(&[piece(b"abc", 0, 1)]).unwrap();
    let other_size = ContentPiece { size: 4, ..piece(b"abc", 1, 1) };
    assert!(matches!(store.put(&[other_size]), Err(ContentError::OutOfBounds(_))));
    assert_eq!(store.bytes(), Bytes(3), "what is arriving counts in full");
}

#[test]
fn the_same_file_twice_in_a_batch_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    assert_eq!(store.put(&[whole(b"abc"), whole(b"abc"), whole(b""), whole(b"")]).unwrap(), [3, 3, 0, 0]);
    assert_eq!(store.bytes(), Bytes(3));
}

#[test]
fn a_damaged_file_is_found_once_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path()).put(&[whole(b"abc")]).unwrap();
    let again = store(folder.path());
    let path = again.path(&hash_of(b"abc"));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "abd").unwrap();
    let unknown = hash_of(b"unknown");
    assert_eq!(store(folder.path()).absent(&[hash_of(b"abc"), unknown]).unwrap(), [hash_of(b"abc"), unknown]);
    fs::write(&path, "abd").unwrap();
    assert!(matches!(again.open_file(&hash_of(b"abc")), Err(ContentError::Damaged(_))));
    assert!(matches!(again.open_file(&hash_of(b"abc")), Err(ContentError::Missing(_))));
    assert!(!path.exists());
    assert_eq!(again.put(&[whole(b"abc")]).unwrap(), [3]);
}

#[test]
fn a_file_that_somebody_removed_is_missing_and_can_be_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    store.put(&[whole(b"abc")]).unwrap();
    fs::remove_file(store.path(&hash_of(b"abc"))).unwrap();
    assert!(matches!(store.open_file(&hash_of(b"abc")), Err(ContentError::Missing(_))));
    assert_eq!(store.put(&[whole(b"abc")]).unwrap(), [3]);
    assert_eq!(contents_of(&store, b"abc"), b"abc");
}

#[test]
fn the_least_recently_used_go_first_and_what_is_kept_stays() {
    let folder = tempfile::tempdir().unwrap();
    let limits = StoreLimits { bytes: Bytes(9), files: 3 };
    let store = ContentStore::open(folder.path(), StoreKind::Cache, limits).unwrap();
    store.put(&[whole(b"one")]).unwrap();
    store.put(&[whole(b"two")]).unwrap();
    store.put(&[whole(b"six")]).unwrap();
    assert!(matches!(store.put(&[whole(b"ten")]), Err(ContentError::Full { .. })));
    assert_eq!(store.missing(&[hash_of(b"one")]), []);
    assert!(store.make_room(Bytes(3), 1, &BTreeSet::from([hash_of(b"two")])));
    let all = [hash_of(b"one"), hash_of(b"two"), hash_of(b"six")];
    assert_eq!(store.missing(&all), [hash_of(b"six")], "`one` was used, `two` is kept");
    store.put(&[whole(b"ten")]).unwrap();
    assert!(!store.make_room(Bytes(10), 1, &BTreeSet::new()), "there never will be so much room");
    assert!(store.make_room(Bytes(9), 1, &BTreeSet::new()));
}

#[test]
fn a_full_store_is_full_by_number_too_and_files_that_arrive_count() {
    let folder = tempfile::tempdir().unwrap();
    let limits = StoreLimits { bytes: Bytes(100), files: 2 };
    let store = ContentStore::open(folder.path(), StoreKind::Cache, limits).unwrap();
    store.put(&[whole(b"one"), piece(b"two", 0, 1)]).unwrap();
    assert!(matches!(store.put(&[whole(b"six")]), Err(ContentError::Full { .. })));
    assert!(!store.make_room(Bytes(0), 1, &BTreeSet::from([hash_of(b"one")])), "one still arrives");
    let again = ContentStore::open(folder.path(), StoreKind::Cache, limits).unwrap();
    assert_eq!(again.bytes(), Bytes(3), "what was arriving is gone with the process");
    again.put(&[whole(b"six")]).unwrap();
}

#[test]
fn what_was_not_used_for_long_expires() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path()).put(&[whole(b"one"), whole(b"two"), whole(b"six")]).unwrap();
    let old = SystemTime::now() - Duration::from_secs(10 * 86_400);
    let opened = store(folder.path());
    for content in [b"one", b"two"] {
        let path = opened.path(&hash_of(content));
        File::open(path).unwrap().set_modified(old).unwrap();
    }
    let again = store(folder.path());
    again.expire(SystemTime::now() - Duration::from_secs(86_400), &BTreeSet::from([hash_of(b"one")]));
    let all = [hash_of(b"one"), hash_of(b"two"), hash_of(b"six")];
    assert_eq!(again.missing(&all), [hash_of(b"two")]);
    let noted = fs::metadata(again.path(&hash_of(b"one"))).unwrap().modified().unwrap();
    assert!(noted > old + Duration::from_secs(86_400), "its use was written down");
}

#[test]
fn foreign_files_in_the_directory_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("ab")).unwrap();
    fs::write(folder.path().join("ab/notes"), "mine").unwrap();
    fs::write(folder.path().join("notes"), "mine").unwrap();
    let store = store(folder.path());
    assert_eq!(store.bytes(), Bytes(0));
    assert!(folder.path().join("ab/notes").exists());
}

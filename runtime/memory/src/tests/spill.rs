//! Objects go to disk and come back.

use std::path::Path;

use super::kit::{digest, pattern, sealed};
use crate::{MemoryError, SpillFile};

#[test]
fn a_spilled_object_comes_back_the_same_and_sealed() {
    let folder = tempfile::tempdir().unwrap();
    for length in [0, 1, 4096, (1 << 20) - 1, 1 << 20, (3 << 20) + 5] {
        let bytes = pattern(length);
        let spilled = SpillFile::write(&sealed(&bytes), folder.path()).unwrap();
        assert_eq!(spilled.bytes(), length as u64);
        let back = spilled.read().unwrap();
        assert_eq!(back.bytes(), length as u64);
        assert_eq!(digest(&back.map().unwrap()), digest(&bytes));
        assert_eq!(digest(&spilled.read().unwrap().map().unwrap()), digest(&bytes), "as often as wanted");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_is_missing_or_has_no_unnamed_files_is_told() {
    for folder in ["/nowhere", "/proc"] {
        let refused = SpillFile::write(&sealed(b"x"), Path::new(folder)).unwrap_err();
        assert!(matches!(refused, MemoryError::Io { .. }), "{refused}");
        assert!(refused.to_string().contains("O_TMPFILE"), "{refused}");
    }
}

#[test]
fn a_spill_file_of_another_length_is_refused() {
    use std::os::fd::AsFd;
    let spilled = SpillFile::write(&sealed(&pattern(100)), &std::env::temp_dir()).unwrap();
    for length in [99, 101] {
        rustix::fs::ftruncate(spilled.as_fd(), length).unwrap();
        let refused = spilled.read().unwrap_err();
        assert!(matches!(refused, MemoryError::SpillDamaged { stated: 100, found } if found == length));
    }
}

#[test]
fn parts_of_objects_are_read_from_memory_and_from_disk() {
    let bytes = pattern((1 << 20) + 5);
    let memory = sealed(&bytes);
    let spilled = SpillFile::write(&memory, &std::env::temp_dir()).unwrap();
    let end = bytes.len();
    for part in [0..0, 0..1, 4095..4097, 7..end, end..end] {
        let mut read = vec![0; part.len()];
        memory.read_at(part.start as u64, &mut read).unwrap();
        assert_eq!(read, bytes[part.clone()]);
        read.fill(0);
        spilled.read_at(part.start as u64, &mut read).unwrap();
        assert_eq!(read, bytes[part]);
    }
    for place in [end as u64 - 1, end as u64, u64::MAX] {
        assert!(matches!(memory.read_at(place, &mut [0; 2]), Err(MemoryError::WrongSize { .. })));
        assert!(matches!(spilled.read_at(place, &mut [0; 2]), Err(MemoryError::SpillDamaged { .. })));
    }
}

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

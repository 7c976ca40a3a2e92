//! How large a snapshot may be, and what to say of a folder that is larger.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use cohabit_store::MOST_FILES;
use cohabit_types::{Bytes, counted};

use super::error::CodeError;
use super::found_file::FoundFile;

/// The most that the files of a snapshot may have, all together. A head may allow less.
pub const MOST_SNAPSHOT_BYTES: Bytes = Bytes(256 << 20);

/// More files than this are not counted.
pub(super) const MOST_LISTED: usize = 10 * MOST_FILES;

/// How many files or directories an error names.
const NAMED: usize = 3;

const REMEDY: &str = "name what the job does not need in .cohabitignore, and pass data by absolute path";

/// Refuses files that are too many, or too large, before they are read.
pub(super) fn check(root: &Path, files: &[FoundFile]) -> Result<(), CodeError> {
    let bytes = Bytes(files.iter().map(FoundFile::size).fold(0, u64::saturating_add));
    let count = files.len();
    let (reason, largest) = if count > MOST_FILES {
        (format!("at most {MOST_FILES} files"), directories(files))
    } else if bytes > MOST_SNAPSHOT_BYTES {
        (format!("at most {MOST_SNAPSHOT_BYTES}"), largest(files))
    } else {
        return Ok(());
    };
    let count = if count > MOST_LISTED { format!("more than {MOST_LISTED}") } else { count.to_string() };
    Err(CodeError::TooLarge(format!(
        "'{}' has {bytes} in {count} files, and a snapshot may have {reason}: {REMEDY}. The largest are {largest}",
        root.display()
    )))
}

/// The largest files.
fn largest(files: &[FoundFile]) -> String {
    let mut files: Vec<&FoundFile> = files.iter().collect();
    files.sort_by_key(|file| Reverse(file.size()));
    let named = files.iter().take(NAMED).map(|file| format!("'{}' ({})", file.path, Bytes(file.size())));
    named.collect::<Vec<_>>().join(", ")
}

/// The directories of the folder with the most files.
fn directories(files: &[FoundFile]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for file in files {
        let directory = file.path.split_once('/').map_or(".", |(directory, _)| directory);
        *counts.entry(directory).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let named = counts
        .iter()
        .take(NAMED)
        .map(|(directory, count)| format!("'{directory}' ({})", counted(*count, "file", "files")));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::found_file::FileKind;
    use super::*;

    #[test]
    fn the_directories_with_the_most_files_are_named() {
        let file =
            |path: String| FoundFile { path, kind: FileKind::Regular { size: 1, is_executable: false } };
        let of = |directory: &str, count: usize| {
            (0..count).map(|number| file(format!("{directory}/x/{number}"))).collect::<Vec<_>>()
        };
        let mut files = [of("few", 2), of("data", MOST_FILES - 20), of("out", 12), of("src", 3)].concat();
        files.extend([file("a.py".into()), file("b.py".into()), file("c.py".into())]);
        assert!(check(Path::new("/home/ada"), &files).is_ok());
        files.extend(of("more", 1));
        let refused = check(Path::new("/home/ada"), &files).unwrap_err().to_string();
        let count =
            "'/home/ada' has 19.5 KiB in 20001 files, and a snapshot may have at most 20000 files: name ";
        assert!(refused.starts_with(count), "{refused}");
        assert!(refused.contains(".cohabitignore"), "{refused}");
        let named = "The largest are 'data' (19980 files), 'out' (12 files), '.' (3 files)";
        assert!(refused.ends_with(named), "{refused}");

        files.resize_with(MOST_LISTED + 1, || file("z".into()));
        let refused = check(Path::new("/home/ada"), &files).unwrap_err().to_string();
        assert!(refused.contains("in more than 200000 files"), "{refused}");
    }
}

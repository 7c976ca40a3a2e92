//! The list of a folder's files.
//!
//! JSON, sorted by path, so that the same folder always has the same bytes and the same hash. Directories
//! are those that the paths name: empty ones are not part of it, as in git. Neither are times and owners.

use std::path::{Component, Path};

use cohabit_types::{Bytes, ContentHash, FormatVersion};
use serde::{Deserialize, Serialize};

use crate::hash::hash_of;

/// The most files that a manifest may list.
pub const MOST_FILES: usize = 20_000;

/// The most bytes of a manifest, as it is stored: 20,000 files with paths of 300 bytes.
pub(crate) const LARGEST_MANIFEST: u64 = 8 << 20;

/// The longest path of a file in a folder, in bytes.
const LONGEST_PATH: usize = 1_024;

/// The longest target of a symbolic link, in bytes: as long as a path may be on Linux.
const LONGEST_TARGET: usize = 4_095;

/// The version that is written, and the latest that is read.
const VERSION: FormatVersion = FormatVersion::new(1);

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    selection: FileSelection,
    files: Vec<ManifestFile>,
}

/// How the files of a folder were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSelection {
    /// Those that git tracks, and those that it does not ignore.
    Git,
    /// All.
    All,
}

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFile {
    /// Below the folder.
    pub path: String,
    /// What it is.
    pub content: FileContent,
}

/// What a file of a folder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// A regular file.
    Stored {
        /// By which it is stored.
        hash: ContentHash,
        /// In bytes.
        size: u64,
        /// Whether it may be executed.
        is_executable: bool,
    },
    /// A symbolic link to this target.
    Link(String),
}

/// Why a list of files is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The bytes are no manifest of this version.
    #[error("the list of files cannot be read: {0}")]
    Unreadable(String),
    /// There are too many.
    #[error("the folder has {0} files, and at most {MOST_FILES} are allowed")]
    TooMany(usize),
    /// Their paths are too long all together.
    #[error(
        "the list of files takes more than {}: shorten paths, or leave files out",
        Bytes(LARGEST_MANIFEST)
    )]
    TooLong,
    /// A path cannot be one below a folder.
    #[error("'{0}' cannot be the path of a file in a folder")]
    Path(String),
    /// The same path twice, a file where another needs a directory, or a wrong order.
    #[error("'{0}' and '{1}' cannot be in the same folder")]
    Conflict(String, String),
    /// The target of a symbolic link cannot be one.
    #[error("'{0}' cannot be the target of a symbolic link")]
    Target(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredManifest {
    version: FormatVersion,
    selection: FileSelection,
    files: Vec<StoredFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum StoredFile {
    File {
        path: String,
        hash: ContentHash,
        size: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        executable: bool,
    },
    Link {
        path: String,
        link: String,
    },
}

impl Manifest {
    /// A folder with these files, in any order.
    ///
    /// # Errors
    /// When they cannot be one folder.
    pub fn new(selection: FileSelection, mut files: Vec<ManifestFile>) -> Result<Manifest, ManifestError> {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let manifest = Manifest { selection, files };
        manifest.check()?;
        match manifest.encode().1.len() as u64 <= LARGEST_MANIFEST {
            true => Ok(manifest),
            false => Err(ManifestError::TooLong),
        }
    }

    /// How its files were chosen.
    #[must_use]
    pub const fn selection(&self) -> FileSelection {
        self.selection
    }

    /// Its files, sorted by path.
    #[must_use]
    pub fn files(&self) -> &[ManifestFile] {
        &self.files
    }

    /// The file at this path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&FileContent> {
        let found = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        Some(&self.files[found].content)
    }

    /// The files that have to be stored, with their sizes; one twice if two paths have the same content.
    pub fn stored(&self) -> impl Iterator<Item = (ContentHash, u64)> {
        self.files.iter().filter_map(|file| match &file.content {
            FileContent::Stored { hash, size, .. } => Some((*hash, *size)),
            FileContent::Link(_) => None,
        })
    }

    /// Its content, all together.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.stored().fold(0, |sum: u64, (_, size)| sum.saturating_add(size)))
    }

    /// As it is stored, and the hash of that.
    #[must_use]
    pub fn encode(&self) -> (ContentHash, Vec<u8>) {
        let files = self.files.iter().cloned().map(StoredFile::from).collect();
        let stored = StoredManifest { version: VERSION, selection: self.selection, files };
        let bytes = serde_json::to_vec(&stored).expect("texts and numbers can always be written");
        (hash_of(&bytes), bytes)
    }

    /// The manifest that is stored so.
    ///
    /// # Errors
    /// When the bytes are none, or of no possible folder.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        if bytes.len() as u64 > LARGEST_MANIFEST {
            return Err(ManifestError::TooLong);
        }
        let unreadable = |error: serde_json::Error| ManifestError::Unreadable(error.to_string());
        let stored: StoredManifest = serde_json::from_slice(bytes).map_err(unreadable)?;
        let checked = stored.version.check(VERSION, "use the version that wrote it, or a later one");
        checked.map_err(|error| ManifestError::Unreadable(error.to_string()))?;
        let files = stored.files.into_iter().map(ManifestFile::from).collect();
        let manifest = Manifest { selection: stored.selection, files };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), ManifestError> {
        if self.files.len() > MOST_FILES {
            return Err(ManifestError::TooMany(self.files.len()));
        }
        self.files.iter().try_for_each(ManifestFile::check)?;
        for pair in self.files.windows(2) {
            let conflict = || ManifestError::Conflict(pair[0].path.clone(), pair[1].path.clone());
            if pair[0].path >= pair[1].path {
                return Err(conflict());
            }
        }
        // Other paths may come between a file and those below it: `a`, `a-b`, `a/b`.
        for file in &self.files {
            let above = file.path.match_indices('/').map(|(end, _)| &file.path[..end]);
            if let Some(taken) = above.into_iter().find(|path| self.file(path).is_some()) {
                return Err(ManifestError::Conflict(taken.to_owned(), file.path.clone()));
            }
        }
        Ok(())
    }
}

impl ManifestFile {
    fn check(&self) -> Result<(), ManifestError> {
        let path = &self.path;
        let parts = path.split('/').map(|part| Path::new(part).components().collect::<Vec<_>>());
        let is_name = |parts: Vec<Component<'_>>| matches!(parts[..], [Component::Normal(_)]);
        if path.len() > LONGEST_PATH || path.contains('\0') || !parts.into_iter().all(is_name) {
            return Err(ManifestError::Path(path.clone()));
        }
        match &self.content {
            FileContent::Link(target)
                if target.is_empty() || target.contains('\0') || target.len() > LONGEST_TARGET =>
            {
                Err(ManifestError::Target(target.clone()))
            }
            FileContent::Link(_) | FileContent::Stored { .. } => Ok(()),
        }
    }
}

impl From<ManifestFile> for StoredFile {
    fn from(ManifestFile { path, content }: ManifestFile) -> StoredFile {
        match content {
            FileContent::Stored { hash, size, is_executable } => {
                StoredFile::File { path, hash, size, executable: is_executable }
            }
            FileContent::Link(link) => StoredFile::Link { path, link },
        }
    }
}

impl From<StoredFile> for ManifestFile {
    fn from(file: StoredFile) -> ManifestFile {
        match file {
            StoredFile::File { path, hash, size, executable } => {
                ManifestFile { path, content: FileContent::Stored { hash, size, is_executable: executable } }
            }
            StoredFile::Link { path, link } => ManifestFile { path, content: FileContent::Link(link) },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(path: &str) -> ManifestFile {
        let content = FileContent::Stored { hash: hash_of(path.as_bytes()), size: 3, is_executable: false };
        ManifestFile { path: path.into(), content }
    }

    fn link(path: &str, target: &str) -> ManifestFile {
        ManifestFile { path: path.into(), content: FileContent::Link(target.into()) }
    }

    fn folder(files: Vec<ManifestFile>) -> Result<Manifest, ManifestError> {
        Manifest::new(FileSelection::Git, files)
    }

    #[test]
    fn the_order_of_files_does_not_change_the_hash() {
        let one = folder(vec![file("b"), file("a/c"), link("z", "../a")]).unwrap();
        let other = folder(vec![link("z", "../a"), file("a/c"), file("b")]).unwrap();
        assert_eq!(one.encode(), other.encode());
        assert_eq!(Manifest::decode(&one.encode().1).unwrap(), one);
        assert_eq!((one.bytes(), one.stored().count()), (Bytes(6), 2));
        assert_eq!(one.file("a/c"), Some(&file("a/c").content));
        assert_eq!(one.file("a"), None);
    }

    /// Written by hand: a change of the format shows here.
    #[test]
    fn the_format_is_this() {
        let stored = FileContent::Stored { hash: ContentHash([0xab; 32]), size: 3, is_executable: true };
        let run = ManifestFile { path: "run.sh".into(), content: stored };
        let text = format!(
            r#"{{"version":1,"selection":"all","files":[{{"path":"data","link":"/srv/data"}},{{"path":"run.sh","hash":"{}","size":3,"executable":true}}]}}"#,
            "ab".repeat(32)
        );
        let manifest = Manifest::new(FileSelection::All, vec![run, link("data", "/srv/data")]).unwrap();
        assert_eq!(String::from_utf8(manifest.encode().1).unwrap(), text);
    }

    #[test]
    fn paths_stay_below_the_folder() {
        let long = "a/".repeat(600) + "b";
        for bad in ["", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\0b", &long] {
            assert_eq!(folder(vec![file(bad)]), Err(ManifestError::Path(bad.into())), "{bad}");
        }
        for good in ["a", "a b/ö.py", "...", ".git", "a\nb", "-rf"] {
            assert!(folder(vec![file(good)]).is_ok(), "{good}");
        }
        assert!(matches!(folder(vec![link("a", "")]), Err(ManifestError::Target(_))));
    }

    #[test]
    fn nothing_lies_below_a_file_or_a_link() {
        let conflict = |one: &str, other: &str| Err(ManifestError::Conflict(one.into(), other.into()));
        assert_eq!(folder(vec![file("a"), file("a")]), conflict("a", "a"));
        assert_eq!(folder(vec![file("a/b"), file("a-b"), file("a")]), conflict("a", "a/b"));
        assert_eq!(folder(vec![link("a", "/etc"), file("a/b/c")]), conflict("a", "a/b/c"));
    }

    #[test]
    fn what_was_stored_is_checked_again() {
        let unsorted =
            r#"{"version":1,"selection":"git","files":[{"path":"b","link":"x"},{"path":"a","link":"x"}]}"#;
        assert!(matches!(Manifest::decode(unsorted.as_bytes()), Err(ManifestError::Conflict(..))));
        let newer = r#"{"version":2,"selection":"git","files":[]}"#;
        assert!(Manifest::decode(newer.as_bytes()).unwrap_err().to_string().contains("version 2"));
        for bad in ["", "{}", "[]", r#"{"version":1,"selection":"git","files":[{"path":"a"}]}"#] {
            assert!(matches!(Manifest::decode(bad.as_bytes()), Err(ManifestError::Unreadable(_))), "{bad}");
        }
        let many: Vec<_> = (0..=MOST_FILES).map(|number| file(&number.to_string())).collect();
        assert_eq!(folder(many), Err(ManifestError::TooMany(MOST_FILES + 1)));
        let long = "x".repeat(250) + "/" + &"y".repeat(250) + "/";
        let many: Vec<_> = (0..MOST_FILES).map(|number| file(&format!("{long}{number}"))).collect();
        assert_eq!(folder(many), Err(ManifestError::TooLong));
        assert_eq!(Manifest::decode(&vec![b' '; 9 << 20]), Err(ManifestError::TooLong));
    }

    proptest! {
        #[test]
        fn a_manifest_that_is_taken_comes_back_as_it_was(paths in prop::collection::vec("[ab./-]{0,6}", 0..6)) {
            if let Ok(manifest) = folder(paths.iter().map(|path| file(path)).collect()) {
                prop_assert_eq!(Manifest::decode(&manifest.encode().1), Ok(manifest.clone()));
            }
        }
    }
}

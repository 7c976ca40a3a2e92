//! The code snapshot of a job, and the pieces in which stored files travel.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Bytes, ContentHash, JobId};

/// The most content that one message carries, in bytes.
pub const PIECE_BYTES: usize = 1 << 20;

/// The code of a job as it was when the job was submitted: a folder, stored file by file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeSnapshot {
    /// The stored list of its files.
    pub manifest: ContentHash,
    /// Absolute path of the folder that it was taken of, where the job was submitted.
    pub folder: String,
    /// Its files and symbolic links.
    pub files: u64,
    /// Their content, all together.
    pub bytes: Bytes,
}

impl CodeSnapshot {
    /// The part of this path below the folder; none if it does not lie in the folder.
    #[must_use]
    pub fn relative<'a>(&self, path: &'a str) -> Option<&'a Path> {
        Path::new(path).strip_prefix(&self.folder).ok()
    }

    /// Refuses a snapshot in which a job with this working directory cannot start.
    pub(crate) fn check(&self, workdir: &str) -> Result<(), String> {
        let folder = &self.folder;
        let climbs = |path: &str| Path::new(path).components().any(|part| part == Component::ParentDir);
        let plain: PathBuf = Path::new(folder).components().collect();
        if !folder.starts_with('/') || climbs(folder) || plain.as_os_str() != folder.as_str() {
            return Err(format!("the folder '{folder}' of the code snapshot is not a plain absolute path"));
        }
        match !climbs(workdir) && self.relative(workdir).is_some() {
            true => Ok(()),
            false => Err(format!(
                "the working directory '{workdir}' does not lie in '{folder}', of which the code snapshot was \
                 taken: choose one inside"
            )),
        }
    }
}

/// A piece of a stored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentPiece {
    /// The file.
    pub file: ContentHash,
    /// How many bytes the whole file has.
    pub size: u64,
    /// How many of them come before this piece.
    pub offset: u64,
    /// At most [`PIECE_BYTES`].
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
}

/// What is to be read of the code of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRequest {
    /// The job.
    pub job: JobId,
    /// The manifest of its snapshot, or a file that the manifest names.
    pub file: ContentHash,
    /// How many bytes are known already.
    pub offset: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(folder: &str) -> CodeSnapshot {
        CodeSnapshot { manifest: ContentHash([1; 32]), folder: folder.into(), files: 1, bytes: Bytes(1) }
    }

    #[test]
    fn the_working_directory_lies_in_the_folder() {
        let code = snapshot("/home/ada/net");
        assert_eq!(code.check("/home/ada/net"), Ok(()));
        assert_eq!(code.check("/home/ada/net/src"), Ok(()));
        assert_eq!(code.relative("/home/ada/net/src"), Some(Path::new("src")));
        for outside in ["/home/ada", "/home/ada/network", "/home/ada/net/../other", "/"] {
            assert!(code.check(outside).unwrap_err().contains("does not lie in"), "{outside}");
        }
        for bad in ["net", "", "/home/../net", "/home//net", "/home/net/"] {
            assert!(snapshot(bad).check("/home/net").is_err(), "{bad}");
        }
        assert_eq!(snapshot("/").check("/srv"), Ok(()));
    }
}

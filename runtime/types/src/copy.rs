//! Files of jobs on their way to the machine of whoever wants them, carried in pieces.
//!
//! The pieces are a stream of bytes that only its two ends read (`cohabit-transfer`): a process on the node
//! with the rights of the job's account, and the client. Head and worker pass them on.

use serde::{Deserialize, Serialize};

use crate::{Bytes, FollowMode, RankId, Role};

/// The most bytes of a piece.
pub const COPY_PIECE: usize = 1 << 20;

/// The most copies of a user at once on a worker.
pub const MOST_COPIES: usize = 4;

/// What is copied unless its user names another limit.
pub const COPY_LIMIT: Bytes = Bytes(1 << 30);

/// A copy of files of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CopyId {
    /// The rank on whose node the files are.
    pub rank: RankId,
    /// A number that the client has drawn at random.
    pub number: u64,
}

/// Begins to copy a file or a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRequest {
    /// Which. To begin the same twice begins it once.
    pub id: CopyId,
    /// What: absolute, or relative to the working directory of the job.
    pub path: String,
    /// Whether a directory is copied.
    pub depth: CopyDepth,
    /// More content is not copied.
    pub limit: Bytes,
}

/// What a [`CopyRequest`] may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyDepth {
    /// A file.
    File,
    /// A file, or a directory with all that is in it.
    Tree,
}

/// What a worker is to copy, and with whose rights: the head knows the job, also after its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCopyOrder {
    /// What the client asks for.
    pub request: CopyRequest,
    /// The user who asks: their copies are counted.
    pub user: String,
    /// The account as which the files are read, where the worker can choose.
    pub account: String,
    /// What that account may be: only where an admin reads files of their own job, one with all rights.
    pub role: Role,
    /// The working directory of the job.
    pub workdir: String,
    /// Where that is in the copy of the code, if the job runs in one.
    pub code_workdir: Option<String>,
}

/// Asks for the bytes of a copy from a position on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRead {
    /// Which copy.
    pub id: CopyId,
    /// How many bytes have arrived: they are not needed any more.
    pub from: u64,
    /// What to do where there are none yet.
    pub at_end: FollowMode,
}

/// Bytes of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPiece {
    /// At most [`COPY_PIECE`].
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// Whether no more come after them.
    pub is_last: bool,
}

impl CopyRequest {
    /// Refuses what no worker could find.
    ///
    /// # Errors
    /// What is wrong, for whoever asks.
    pub fn check(&self) -> Result<(), String> {
        /// The longest path that the kernel takes.
        const LONGEST: usize = 4_095;
        match self.path.len() {
            _ if self.path.contains('\0') => Err("the path contains a NUL".to_owned()),
            0 => Err("the path is empty: name a file, or '.' for the working directory".to_owned()),
            length if length > LONGEST => {
                Err(format!("the path has {length} bytes, and no path has more than {LONGEST}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobId;

    #[test]
    fn a_path_that_cannot_be_is_refused() {
        let checked = |path: &str| {
            let id = CopyId { rank: JobId::new(1).attempt(1).rank(0), number: 7 };
            CopyRequest { id, path: path.into(), depth: CopyDepth::File, limit: COPY_LIMIT }.check()
        };
        assert_eq!(checked("out/model.pt"), Ok(()));
        assert!(checked("").unwrap_err().contains("'.' for the working directory"));
        assert!(checked("a\0b").unwrap_err().contains("NUL"));
        assert!(checked(&"x".repeat(5_000)).unwrap_err().contains("5000 bytes"));
    }
}

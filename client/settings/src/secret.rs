//! Files with secrets: one line, in a file that nobody else may read.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::geteuid;

/// The largest file with a secret, in bytes.
const MOST_BYTES: u64 = 16 << 10;

/// A secret from a file. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct FileSecret(String);

impl FileSecret {
    /// A secret that stands in no file.
    #[must_use]
    pub fn of(text: &str) -> FileSecret {
        FileSecret(text.to_owned())
    }

    /// The secret itself: only to be sent to where it belongs.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Reads a file that belongs to this user, or to root, and that nobody else may read. Blocks.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do.
    pub fn read(path: &Path) -> Result<FileSecret, String> {
        let shown = path.display();
        let cannot = |error| format!("cannot read {shown}: {error}");
        let file = File::open(path).map_err(cannot)?;
        // Of the open file: it cannot be exchanged between the check and the read.
        let metadata = file.metadata().map_err(cannot)?;
        let (mode, owner) = (metadata.mode() & 0o777, metadata.uid());
        if mode & 0o077 != 0 {
            return Err(format!("other users can read {shown} (mode {mode:o}): run chmod 600 {shown}"));
        }
        if owner != 0 && owner != geteuid().as_raw() {
            return Err(format!("{shown} belongs to another user (uid {owner}), who can read it"));
        }
        let mut text = String::new();
        file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
        let line = text.trim();
        if line.is_empty() || line.contains(char::is_control) || text.len() as u64 > MOST_BYTES {
            return Err(format!("{shown} has to hold one line of at most {} KiB", MOST_BYTES >> 10));
        }
        Ok(FileSecret(line.to_owned()))
    }
}

impl std::fmt::Debug for FileSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FileSecret(...)")
    }
}

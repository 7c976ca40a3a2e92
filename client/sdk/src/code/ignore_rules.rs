//! The file `.cohabitignore` of a folder: patterns of files that are not part of its snapshots.

use std::fs;
use std::io;
use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::error::CodeError;

/// The name of the file.
const FILE: &str = ".cohabitignore";

/// The patterns, in the syntax of `.gitignore`.
#[derive(Debug)]
pub(super) struct IgnoreRules(Gitignore);

impl IgnoreRules {
    /// Those of this folder; none if it has no such file. Blocks.
    pub(super) fn of(folder: &Path) -> Result<IgnoreRules, CodeError> {
        let file = folder.join(FILE);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(CodeError::Unreadable { file, source }),
        };
        let bad = |line: usize, error: ignore::Error| CodeError::BadPattern {
            file: file.clone(),
            line,
            why: error.to_string(),
        };
        // Paths are matched below the folder.
        let mut builder = GitignoreBuilder::new(".");
        for (number, line) in text.lines().enumerate() {
            builder.add_line(None, line).map_err(|error| bad(number + 1, error))?;
        }
        builder.build().map(IgnoreRules).map_err(|error| bad(1, error))
    }

    /// Whether this file, by its path below the folder, is left out.
    pub(super) fn leave_out(&self, file: &Path) -> bool {
        self.0.matched_path_or_any_parents(file, false).is_ignore()
    }

    /// Whether everything below this directory is left out: no pattern takes something in again.
    pub(super) fn leave_out_all_below(&self, directory: &Path) -> bool {
        self.0.num_whitelists() == 0 && self.0.matched_path_or_any_parents(directory, true).is_ignore()
    }
}

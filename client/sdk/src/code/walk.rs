//! Lists all files below a folder.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::CodeError;
use super::ignore_rules::IgnoreRules;
use super::limits::MOST_LISTED;

/// Their paths below the folder, without what git keeps in `.git`. Symbolic links are not followed. Ends when
/// there are more than a snapshot can ever have. Blocks.
pub(super) fn list(root: &Path, rules: &IgnoreRules) -> Result<Vec<PathBuf>, CodeError> {
    let (mut files, mut waiting) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = waiting.pop() {
        let full = root.join(&directory);
        let unreadable = |source| CodeError::Unreadable { file: full.clone(), source };
        for entry in fs::read_dir(&full).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = directory.join(entry.file_name());
            let is_directory = entry.file_type().map_err(unreadable)?.is_dir();
            if entry.file_name() == OsStr::new(".git") {
                continue;
            }
            if is_directory && !rules.leave_out_all_below(&path) {
                waiting.push(path);
            } else if !is_directory && !rules.leave_out(&path) {
                files.push(path);
            }
        }
        if files.len() > MOST_LISTED {
            break;
        }
    }
    Ok(files)
}

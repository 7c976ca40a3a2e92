//! Lists the files that git tracks or does not ignore, with the program `git`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::CodeError;
use super::ignore_rules::IgnoreRules;

/// Variables that would make git look at another repository than that of the folder.
const REDIRECTIONS: [&str; 3] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"];

/// The path of a directory below the top of its work tree. Blocks.
///
/// # Errors
/// [`CodeError::NotUnderGit`] if it has none.
pub(super) fn path_in_work_tree(directory: &Path) -> Result<PathBuf, CodeError> {
    let mut prefix = run(directory, &["rev-parse", "--show-prefix"])?;
    prefix.truncate(prefix.trim_ascii_end().len());
    Ok(PathBuf::from(OsString::from_vec(prefix)).components().collect())
}

/// Paths below the folder, also those of files that were deleted. Nested repositories, submodules among them,
/// are listed in the same way. Blocks.
pub(super) fn list(root: &Path, rules: &IgnoreRules) -> Result<Vec<PathBuf>, CodeError> {
    let (mut files, mut waiting) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(repository) = waiting.pop() {
        for listed in list_repository(&root.join(&repository))? {
            let path = repository.join(listed);
            let full = root.join(&path);
            if !full.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                if !rules.leave_out(&path) {
                    files.push(path);
                }
            } else if path != repository && full.join(".git").exists() && !rules.leave_out_all_below(&path) {
                waiting.push(path);
            }
        }
    }
    Ok(files)
}

/// What git lists of one repository, below this folder. A nested repository is one entry.
fn list_repository(folder: &Path) -> Result<BTreeSet<PathBuf>, CodeError> {
    let listed = run(folder, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| Path::new(OsStr::from_bytes(path)).components().collect()).collect())
}

fn run(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, CodeError> {
    let refuse = |message: String| CodeError::Git { folder: folder.to_owned(), message };
    let mut command = Command::new("git");
    // A monitor of the file system would be a program that the repository chooses.
    command.arg("-C").arg(folder).args(["-c", "core.fsmonitor=false"]).args(arguments).env("LC_ALL", "C");
    REDIRECTIONS.iter().for_each(|name| _ = command.env_remove(name));
    let output = command.output().map_err(|error| refuse(format!("cannot run the program git: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    if message.contains("not a git repository") {
        return Err(CodeError::NotUnderGit(folder.to_owned()));
    }
    let lines = message.lines().map(|line| line.trim().trim_start_matches("fatal: "));
    Err(refuse(lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")))
}

//! Files that the output of a job is written to, besides the log that the cluster keeps.
//!
//! A path may contain patterns of `sbatch`, such as `%j`: only the worker knows what some of them stand for.

use serde::{Deserialize, Serialize};

/// Files that the output of a job is written to, besides its log.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFiles {
    /// An absolute path with patterns, for standard output and, unless there is another for it, for standard
    /// error.
    pub stdout: Option<String>,
    /// An absolute path with patterns, for standard error.
    pub stderr: Option<String>,
}

impl OutputFiles {
    /// Whether the output goes to no file.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// All paths that are given.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.stdout.iter().chain(&self.stderr)
    }

    /// Refuses paths that cannot be opened, in words for the person who wrote them.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.paths().try_for_each(|path| check_path(path))
    }
}

fn check_path(path: &str) -> Result<(), String> {
    let refuse = |why: &str| Err(format!("the output cannot be written to '{path}': {why}"));
    match () {
        () if path.contains('\0') => refuse("a path cannot contain a NUL character"),
        () if !path.starts_with('/') => refuse("the path is not absolute; give the full path"),
        () if path.ends_with('/') => refuse("it names a directory; add the name of a file"),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_can_be_no_file_is_refused() {
        let check = |path: &str| OutputFiles { stderr: Some(path.into()), ..OutputFiles::default() }.check();
        assert_eq!(check("/home/ada/%x-%4j.out"), Ok(()));
        for (path, why) in [("a.out", "full path"), ("/logs/", "names a directory"), ("/a\0b", "NUL")] {
            assert!(check(path).unwrap_err().contains(why), "{path}");
        }
    }
}

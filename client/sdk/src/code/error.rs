//! Why no snapshot of a folder can be taken.

use std::io;
use std::path::PathBuf;

use cohabit_store::ManifestError;

/// Why no snapshot of a folder can be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The folder cannot be read on this machine.
    #[error("cannot read the directory '{}', of which the snapshot is to be taken: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// The folder lies in no git repository.
    #[error(
        "'{}' is not under git: take all of its files with --snapshot=all, or run `git init` there",
        .0.display()
    )]
    NotUnderGit(PathBuf),
    /// Git does not run or refuses to list the files.
    #[error("git cannot list the files of '{}' ({message}): mend that, or use --snapshot=all", folder.display())]
    Git {
        /// The folder.
        folder: PathBuf,
        /// What git says.
        message: String,
    },
    /// A path or the target of a link is not valid UTF-8.
    #[error(
        "the {what} of '{}' is not valid UTF-8: rename it, or name it in .cohabitignore",
        file.display()
    )]
    NotUtf8 {
        /// `name` or `target`.
        what: &'static str,
        /// The file, below the folder.
        file: PathBuf,
    },
    /// A file or directory cannot be read.
    #[error("cannot read '{}' ({source}): make it readable, or name it in .cohabitignore", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// A line of `.cohabitignore` is no pattern.
    #[error("{}:{line}: {why}", file.display())]
    BadPattern {
        /// The file `.cohabitignore`.
        file: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The folder has too many files, or they are too large. The text names the largest, and the remedy.
    #[error("{0}")]
    TooLarge(String),
    /// The files cannot be one folder.
    #[error(transparent)]
    Impossible(#[from] ManifestError),
    /// The content of this file is never the same twice.
    #[error("'{0}' changes while the snapshot is taken: name it in .cohabitignore")]
    Changing(String),
}

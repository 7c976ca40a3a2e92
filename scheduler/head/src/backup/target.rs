//! The directory that a restore makes: nothing is there, or nothing is in it; then everything is.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::contents::JOURNAL;
use super::error::BackupError;
use super::workspace::private_folder;
use crate::state_dir::StateDir;

/// Where a state directory is to appear.
pub(super) struct RestoreTarget {
    path: PathBuf,
    kind: TargetKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetKind {
    Absent,
    /// An empty directory, perhaps with another owner of the one above, or another file system.
    Empty,
}

impl RestoreTarget {
    /// Refuses a directory that holds something.
    pub(super) fn at(state: &Path) -> Result<RestoreTarget, BackupError> {
        let mut entries = match fs::read_dir(state) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(RestoreTarget { path: state.to_owned(), kind: TargetKind::Absent });
            }
            entries => entries.map_err(BackupError::io(state))?,
        };
        if entries.next().is_none() {
            return Ok(RestoreTarget { path: state.to_owned(), kind: TargetKind::Empty });
        }
        if state.join("lock").is_file() {
            // For a head that runs there, this is the better reason.
            StateDir::lock_existing(state)?;
        }
        Err(BackupError::NotEmpty(state.to_owned()))
    }

    /// Where the new state is made: beside a directory that does not exist, inside an empty one.
    pub(super) fn folder(&self) -> &Path {
        let above = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        match self.kind {
            TargetKind::Absent => above.unwrap_or(Path::new(".")),
            TargetKind::Empty => &self.path,
        }
    }

    /// A directory that only this account can use, removed when it is dropped.
    pub(super) fn workspace(&self) -> Result<TempDir, BackupError> {
        private_folder(self.folder(), ".cohabit-restore-")
    }

    /// Lets the state appear that was made in the workspace.
    pub(super) fn publish(&self, workspace: &Path) -> Result<(), BackupError> {
        let published = match self.kind {
            TargetKind::Absent => fs::rename(workspace, &self.path),
            TargetKind::Empty => self.move_in(workspace),
        };
        published.map_err(BackupError::io(&self.path))?;
        let folder = self.folder();
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(BackupError::io(folder))
    }

    /// The journal comes last, and the id of the cluster first: a head does not start with one and without
    /// the other.
    fn move_in(&self, workspace: &Path) -> io::Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(workspace)? {
            names.push(entry?.file_name());
        }
        names.sort_by_key(|name| (name == JOURNAL, name != "cluster", name.clone()));
        names.iter().try_for_each(|name| fs::rename(workspace.join(name), self.path.join(name)))
    }
}

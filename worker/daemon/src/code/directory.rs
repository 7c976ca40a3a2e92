//! The directory of the copy that an attempt runs in.
//!
//! ```text
//! manifest.json    the list of the files that were copied
//! files/           the copy; belongs to the user of the job
//! sockets/         those of the processes of an application; only their user may enter it
//! ```

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use cohabit_host::files::{
    FileContext, FileError, WriteMode, allow_traversal, read, remove_directory, write,
};
use cohabit_store::{ContentError, ContentStore, Manifest, remove_unchanged, write_tree};

/// The directory of a copy.
#[derive(Debug, Clone)]
pub(crate) struct CodeDirectory(PathBuf);

/// Why a directory could not be written, or cleared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeDirectoryError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Store(#[from] ContentError),
}

impl CodeDirectory {
    pub(crate) const fn new(path: PathBuf) -> CodeDirectory {
        CodeDirectory(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The copy.
    pub(crate) fn files(&self) -> PathBuf {
        self.0.join("files")
    }

    fn manifest(&self) -> PathBuf {
        self.0.join("manifest.json")
    }

    /// Removes what another attempt with this id left before the head was reset. Blocks.
    pub(crate) fn clear(&self) -> Result<(), FileError> {
        match remove_directory(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("clear", &self.0),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Makes the copy in the empty directory, with this directory in it, for this user and group. Blocks.
    pub(crate) fn write(
        &self,
        manifest: &Manifest,
        stored: &ContentStore,
        workdir: &Path,
        owner: Option<(u32, u32)>,
    ) -> Result<(), CodeDirectoryError> {
        if owner.is_some() {
            // The directories of the attempt and of its job.
            self.0.ancestors().take(2).try_for_each(allow_traversal)?;
        }
        write(&self.manifest(), &manifest.encode().1, WriteMode::InPlace)?;
        Ok(write_tree(manifest, stored, &self.files(), workdir, owner)?)
    }

    /// Where the processes of an application meet on this host.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.0.join("sockets")
    }

    /// Makes the directory for the sockets of an application, for this user and group. Blocks.
    pub(crate) fn create_sockets(&self, owner: Option<(u32, u32)>) -> Result<(), CodeDirectoryError> {
        let path = self.sockets();
        DirBuilder::new().mode(0o700).create(&path).at("create", &path)?;
        if let Some((uid, gid)) = owner {
            chown(&path, Some(uid), Some(gid)).at("change the owner of", &path)?;
        }
        Ok(())
    }

    /// Removes what nobody has changed since; all of the directory, if nothing else is in it. Blocks.
    pub(crate) fn remove_unchanged(&self) -> Result<(), CodeDirectoryError> {
        match remove_directory(&self.sockets()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).at("remove", &self.sockets())?;
            }
            Ok(()) | Err(_) => {}
        }
        let bytes = match read(&self.manifest()) {
            // It was never begun, or is cleared already.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.at("read", &self.manifest())?,
        };
        let is_empty = match Manifest::decode(&bytes) {
            Ok(manifest) => remove_unchanged(&manifest, &self.files())?,
            // It was being written when the daemon ended, so no rank has started in the copy.
            Err(_) => true,
        };
        match is_empty {
            true => remove_directory(&self.0).at("remove", &self.0)?,
            false => std::fs::remove_file(self.manifest()).at("remove", &self.manifest())?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cohabit_store::{FileContent, FileSelection, ManifestFile, StoreKind, StoreLimits, hash_of};
    use cohabit_types::{Bytes, ContentPiece};

    use super::*;

    /// A copy of a folder with one file, not yet made.
    fn prepared(folder: &Path) -> (CodeDirectory, Manifest, ContentStore) {
        let limits = StoreLimits { bytes: Bytes(1 << 20), files: 10 };
        let stored = ContentStore::open(&folder.join("stored"), StoreKind::Cache, limits).unwrap();
        let hash = hash_of(b"print(1)");
        stored.put(&[ContentPiece { file: hash, size: 8, offset: 0, bytes: b"print(1)".into() }]).unwrap();
        let content = FileContent::Stored { hash, size: 8, is_executable: false };
        let file = ManifestFile { path: "src/train.py".into(), content };
        let manifest = Manifest::new(FileSelection::Git, vec![file]).unwrap();
        (CodeDirectory::new(folder.join("code/7/1")), manifest, stored)
    }

    #[test]
    fn a_copy_that_nobody_changed_goes_away_and_results_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, manifest, stored) = prepared(folder.path());
        fs::create_dir_all(directory.path()).unwrap();
        directory.write(&manifest, &stored, Path::new("src"), None).unwrap();
        assert_eq!(fs::read(directory.files().join("src/train.py")).unwrap(), b"print(1)");
        directory.remove_unchanged().unwrap();
        assert!(!directory.path().exists());
        directory.remove_unchanged().unwrap();

        fs::create_dir_all(directory.path()).unwrap();
        directory.write(&manifest, &stored, Path::new("src"), None).unwrap();
        fs::write(directory.files().join("loss.csv"), "1").unwrap();
        directory.remove_unchanged().unwrap();
        assert!(directory.files().join("loss.csv").exists() && !directory.files().join("src").exists());
        directory.remove_unchanged().unwrap();
        assert!(directory.files().join("loss.csv").exists(), "results are not looked at again");
    }

    #[test]
    fn an_attempt_does_not_find_what_another_with_its_id_left() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, _, _) = prepared(folder.path());
        directory.clear().unwrap();
        fs::create_dir_all(directory.files()).unwrap();
        fs::write(directory.files().join("loss.csv"), "1").unwrap();
        directory.clear().unwrap();
        assert!(!directory.path().exists());
    }

    #[test]
    fn a_copy_whose_daemon_died_while_it_was_made_goes_away() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, manifest, stored) = prepared(folder.path());
        fs::create_dir_all(directory.path()).unwrap();
        directory.write(&manifest, &stored, Path::new("src"), None).unwrap();
        fs::write(directory.path().join("manifest.json"), "{").unwrap();
        directory.remove_unchanged().unwrap();
        assert!(!directory.path().exists());
    }
}

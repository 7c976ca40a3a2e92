//! Makes a folder of a manifest, and takes it away again when it has been used.
//!
//! The folder is a copy: whoever owns it may change it. What was not changed can be told from what was by its
//! time of modification, which is the same, long ago, for everything that is written here.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::content_store::ContentStore;
use crate::error::{ContentError, IoContext};
use crate::manifest::{FileContent, Manifest};
use crate::tree_walk;

/// When everything in a folder was changed last that nobody has changed, in seconds since 1970: the first day
/// of 2020, because archives of Python packages hold no time before 1980.
pub(crate) const UNCHANGED: u64 = 1_577_836_800;

/// Writes the files of a manifest into a folder, which must not exist, and gives all of it to this user and
/// group. Until it is complete only this process's user may enter it. Creates this directory in it as well,
/// where no file lies in it or has its name. Blocks.
///
/// # Errors
/// [`ContentError::Missing`] if a file is not stored, and those of the disk. An incomplete folder stays.
pub fn write_tree(
    manifest: &Manifest,
    content: &ContentStore,
    folder: &Path,
    directory: &Path,
    owner: Option<(u32, u32)>,
) -> Result<(), ContentError> {
    DirBuilder::new().mode(0o700).create(folder).at("create", folder)?;
    let folders = folders_of(manifest, directory);
    let folders: Vec<PathBuf> = folders.into_iter().map(|path| folder.join(path)).collect();
    folders.iter().try_for_each(|path| DirBuilder::new().mode(0o700).create(path).at("create", path))?;
    for file in manifest.files() {
        let path = folder.join(&file.path);
        match &file.content {
            FileContent::Link(target) => symlink(target, &path).at("create the link", &path)?,
            FileContent::Stored { hash, is_executable, .. } => {
                let mut from = content.open_file(hash)?;
                let to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
                copy(&mut from, to.at("create", &path)?, *is_executable).at("write", &path)?;
            }
        }
        own(&path, owner)?;
    }
    for path in &folders {
        fs::set_permissions(path, Permissions::from_mode(0o755)).at("open", path)?;
        own(path, owner)?;
    }
    own(folder, owner)
}

/// The directories that files lie in, and this one, unless a file is in its way. Each comes after those that
/// it lies in.
fn folders_of<'a>(manifest: &'a Manifest, directory: &'a Path) -> BTreeSet<&'a Path> {
    let of_files = manifest.files().iter().flat_map(|file| Path::new(&file.path).ancestors().skip(1));
    let is_file = |path: &Path| path.to_str().is_some_and(|path| manifest.file(path).is_some());
    let is_free = !directory.ancestors().any(is_file);
    let wanted = directory.ancestors().filter(|_| is_free);
    of_files.chain(wanted).filter(|path| !path.as_os_str().is_empty()).collect()
}

fn copy(from: &mut File, mut to: File, is_executable: bool) -> io::Result<()> {
    io::copy(from, &mut to)?;
    to.set_permissions(Permissions::from_mode(if is_executable { 0o755 } else { 0o644 }))?;
    let unchanged = SystemTime::UNIX_EPOCH + Duration::from_secs(UNCHANGED);
    to.set_times(FileTimes::new().set_modified(unchanged))
}

fn own(path: &Path, owner: Option<(u32, u32)>) -> Result<(), ContentError> {
    let Some((user, group)) = owner else { return Ok(()) };
    std::os::unix::fs::lchown(path, Some(user), Some(group)).at("give to its user", path)
}

/// Removes from a folder what [`write_tree`] put there and nobody has changed since; what a job wrote stays.
/// Returns whether nothing is left; then the folder is gone, too. Blocks.
///
/// Its owner may have replaced anything in it: symbolic links are not followed.
///
/// # Errors
/// When the folder cannot be read.
pub fn remove_unchanged(manifest: &Manifest, folder: &Path) -> Result<bool, ContentError> {
    tree_walk::remove_unchanged(manifest, folder).at("clear", folder)
}

#[cfg(test)]
#[path = "tests/tree.rs"]
mod tests;

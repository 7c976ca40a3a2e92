//! Walks a folder that belongs to somebody else, from one open directory to the next: a path could lead
//! elsewhere by the time it is used.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};

use crate::manifest::{FileContent, Manifest};
use crate::tree::UNCHANGED;

/// Directories inside one another; what lies deeper was not in a manifest and stays.
const DEEPEST: usize = 600;

/// Removes what is as the manifest says; returns whether the folder is gone.
pub(crate) fn remove_unchanged(manifest: &Manifest, folder: &Path) -> io::Result<bool> {
    let root = match open_directory(CWD, folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened?,
    };
    clear(manifest, root.as_fd(), "", 0)?;
    match unlinkat(CWD, folder, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn open_directory(at: BorrowedFd<'_>, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

/// Clears a directory, whose path below the folder ends with a slash unless it is the folder.
fn clear(manifest: &Manifest, directory: BorrowedFd<'_>, path: &str, depth: usize) -> io::Result<()> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            entries.push(entry.file_name().to_owned());
        }
    }
    for name in entries {
        // A name that is not UTF-8 is in no manifest.
        let Ok(text) = name.to_str() else { continue };
        let path = format!("{path}{text}");
        let Ok(found) = statat(directory, &*name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let kind = FileType::from_raw_mode(found.st_mode);
        if kind != FileType::Directory {
            if manifest.file(&path).is_some_and(|file| is_unchanged(file, kind, &found, directory, &name)) {
                unlinkat(directory, &*name, AtFlags::empty())?;
            }
        } else if depth < DEEPEST {
            if let Ok(inner) = open_directory(directory, &*name) {
                clear(manifest, inner.as_fd(), &format!("{path}/"), depth + 1)?;
            }
            // One that is not empty stays.
            let _ = unlinkat(directory, &*name, AtFlags::REMOVEDIR);
        }
    }
    Ok(())
}

fn is_unchanged(
    file: &FileContent,
    kind: FileType,
    found: &rustix::fs::Stat,
    directory: BorrowedFd<'_>,
    name: &CStr,
) -> bool {
    match file {
        FileContent::Stored { size, .. } => {
            kind == FileType::RegularFile
                && u64::try_from(found.st_size).is_ok_and(|found| found == *size)
                && u64::try_from(found.st_mtime).is_ok_and(|at| at == UNCHANGED)
                && found.st_mtime_nsec == 0
        }
        FileContent::Link(target) => {
            kind == FileType::Symlink
                && rustix::fs::readlinkat(directory, name, Vec::new())
                    .is_ok_and(|found| found.as_bytes() == target.as_bytes())
        }
    }
}

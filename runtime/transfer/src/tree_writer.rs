//! Writes files and directories below one place, from one open directory to the next: never through a link,
//! and never a file in the place of a directory, whatever entries come and whatever was there before.
//!
//! A file is written under another name beside its place, flushed, and renamed: under its own name it is
//! whole. Links come last, when nothing is written any more.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, futimens, mkdirat, openat,
    renameat, statat, symlinkat, unlinkat,
};

use crate::path::TransferPath;

/// How many names are tried for a file that is being written.
const TRIED_NAMES: u32 = 1_000;

/// Where things are written.
#[derive(Debug)]
pub(crate) struct TreeWriter {
    /// What was named arrives here.
    place: PathBuf,
    /// The directory that arrives there, once it does.
    root: Option<OwnedFd>,
    /// The directory of the last file.
    last: Option<(TransferPath, OwnedFd)>,
    /// Links and their targets.
    links: Vec<(TransferPath, Vec<u8>)>,
}

/// A file that is being written, under another name; removed unless it is kept.
#[derive(Debug)]
pub(crate) struct PartialFile {
    directory: OwnedFd,
    partial_name: OsString,
    name: OsString,
    file: File,
    is_kept: bool,
}

impl TreeWriter {
    /// What was named arrives at this path.
    pub(crate) const fn new(place: PathBuf) -> TreeWriter {
        TreeWriter { place, root: None, last: None, links: Vec::new() }
    }

    /// Makes a directory, unless it is there.
    pub(crate) fn directory(&mut self, path: &TransferPath, mode: u32) -> io::Result<()> {
        // Whatever its permissions are: files come into it.
        let mode = Mode::from_raw_mode(mode & 0o777 | 0o700);
        let Some((above, name)) = path.split() else {
            if self.root.is_some() {
                return Err(out_of_order());
            }
            match mkdirat(CWD, &self.place, mode) {
                Err(rustix::io::Errno::EXIST) => {}
                made => made?,
            }
            self.root = Some(open_directory(CWD, &self.place)?);
            return Ok(());
        };
        let above = self.open(&above)?;
        match mkdirat(&above, name, mode) {
            Err(rustix::io::Errno::EXIST) => open_directory(&above, name).map(drop),
            made => Ok(made?),
        }
    }

    /// Begins a file, unless what is there has the same number: on a disk that both machines share it is the
    /// file itself, into which its job may still write.
    pub(crate) fn file(&mut self, path: &TransferPath, mode: u32, inode: u64) -> io::Result<PartialFile> {
        let (directory, name) = match path.split() {
            Some((above, name)) => (self.open(&above)?, name.to_owned()),
            None => {
                let name = self.place.file_name().ok_or_else(out_of_order)?.to_owned();
                let above = self.place.parent().filter(|above| !above.as_os_str().is_empty());
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                (openat(CWD, above.unwrap_or(Path::new(".")), flags, Mode::empty())?, name)
            }
        };
        if check_replaceable(&directory, &name)? == Some(inode) {
            let same = "it is the file of the job itself, which this machine shares with its node: name another DEST";
            return Err(io::Error::other(same));
        }
        PartialFile::create(directory, name, Mode::from_raw_mode(mode & 0o777))
    }

    /// Notes a link, which is made at the end; or says why it is not.
    pub(crate) fn link(&mut self, path: TransferPath, target: Vec<u8>) -> Result<(), &'static str> {
        if !stays_inside(&path, &target) {
            return Err("it is a link that leads out of what is copied");
        }
        self.links.push((path, target));
        Ok(())
    }

    /// Makes the links, which ends the writing.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        for (path, target) in std::mem::take(&mut self.links) {
            let (above, name) = path.split().ok_or_else(out_of_order)?;
            let directory = self.open(&above)?;
            check_replaceable(&directory, name)?;
            let target = OsStr::from_bytes(&target);
            let partial_name = with_other_name(|partial| Ok(symlinkat(target, &directory, partial)?))?.0;
            if let Err(error) = renameat(&directory, &partial_name, &directory, name) {
                unlinkat(&directory, &partial_name, AtFlags::empty())?;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// A directory that has arrived.
    fn open(&mut self, path: &TransferPath) -> io::Result<OwnedFd> {
        if let Some((last, opened)) = &self.last
            && last == path
        {
            return opened.try_clone();
        }
        let mut opened = self.root.as_ref().ok_or_else(out_of_order)?.try_clone()?;
        for name in path.names() {
            opened = open_directory(&opened, name)?;
        }
        self.last = Some((path.clone(), opened.try_clone()?));
        Ok(opened)
    }
}

impl PartialFile {
    fn create(directory: OwnedFd, name: OsString, mode: Mode) -> io::Result<PartialFile> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (partial_name, file) = with_other_name(|partial| Ok(openat(&directory, partial, flags, mode)?))?;
        Ok(PartialFile { directory, partial_name, name, file: file.into(), is_kept: false })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Gives the file its own name, when it is on the disk.
    pub(crate) fn keep(mut self, modified: i64) -> io::Result<()> {
        let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let modified = Timespec { tv_sec: modified, tv_nsec: 0 };
        // Not every file system stores any time.
        let _ = futimens(&self.file, &Timestamps { last_access: omitted, last_modification: modified });
        self.file.sync_all()?;
        // A directory that has come into its place meanwhile is not replaced by a file.
        renameat(&self.directory, &self.partial_name, &self.directory, &self.name)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing can be done where that fails.
            let _ = unlinkat(&self.directory, &self.partial_name, AtFlags::empty());
        }
    }
}

/// Makes something under a name that nothing has. The name begins with a dot, and says what it is.
fn with_other_name<T>(mut make: impl FnMut(&OsStr) -> io::Result<T>) -> io::Result<(OsString, T)> {
    let process = std::process::id();
    for number in 0..TRIED_NAMES {
        let name = OsString::from(format!(".cohabit-cp-{process}-{number}"));
        match make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((name, made?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn open_directory(at: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

/// Refuses a place where something is that a file may not replace: a directory, or a device such as
/// `/dev/null`. Returns the number of what is there.
fn check_replaceable(directory: impl AsFd, name: &OsStr) -> io::Result<Option<u64>> {
    let found = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        found => found?,
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile | FileType::Symlink => Ok(Some(found.st_ino)),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => {
            Err(io::Error::other("something is there that is no file, and is not replaced"))
        }
    }
}

/// Whether a link leads to what arrives with it: up no further than to what was named, and then down. Names
/// of the target may be links themselves, so `..` behind one could lead anywhere.
fn stays_inside(path: &TransferPath, target: &[u8]) -> bool {
    let depth = path.names().len().saturating_sub(1);
    let mut parts =
        Path::new(OsStr::from_bytes(target)).components().filter(|part| *part != Component::CurDir);
    let mut down = parts.clone().skip_while(|part| *part == Component::ParentDir);
    let up = parts.by_ref().take_while(|part| *part == Component::ParentDir).count();
    !target.is_empty()
        && !target.contains(&0)
        && up <= depth
        && down.all(|part| matches!(part, Component::Normal(_)))
}

fn out_of_order() -> io::Error {
    io::Error::other("the node sent entries in an order in which none are sent")
}

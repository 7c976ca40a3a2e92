//! Opens what is to be sent so that nothing waits and nothing else happens: a pipe without a writer would
//! wait for ever, and devices act when they are opened. So a place is opened first (`O_PATH`), then looked
//! at, and only a file or a directory is opened to be read, by the descriptor that was looked at.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};

use crate::protected::{ProtectedPlaces, descriptor};
use crate::refused::Refused;

/// What there is at a place.
#[derive(Debug)]
pub(crate) enum Source {
    File(PlacedFile),
    Directory(PlacedFile),
    /// A symbolic link that was not followed, with its target.
    Link(Vec<u8>),
    /// What is not sent.
    Refused(Refused),
}

/// A file or directory that is not open to be read yet.
#[derive(Debug)]
pub(crate) struct PlacedFile {
    place: OwnedFd,
    pub(crate) found: Stat,
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Followed,
    Kept,
}

impl Source {
    /// What there is under this name.
    pub(crate) fn find(
        directory: BorrowedFd<'_>,
        name: impl rustix::path::Arg,
        last_link: LastLink,
        protected: &ProtectedPlaces,
    ) -> io::Result<Source> {
        let follow = match last_link {
            LastLink::Followed => OFlags::empty(),
            LastLink::Kept => OFlags::NOFOLLOW,
        };
        let place = openat(directory, name, OFlags::PATH | OFlags::CLOEXEC | follow, Mode::empty())?;
        let found = fstat(&place)?;
        let special = match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                let target = readlinkat(&place, "", Vec::new())?;
                return Ok(Source::Link(target.into_bytes()));
            }
            kind @ (FileType::RegularFile | FileType::Directory) => {
                if let Err(why) = protected.check(&place)? {
                    return Ok(Source::Refused(why));
                }
                let placed = PlacedFile { place, found };
                let is_directory = kind == FileType::Directory;
                return Ok(if is_directory { Source::Directory(placed) } else { Source::File(placed) });
            }
            FileType::Fifo => "a named pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "of an unknown kind",
        };
        let why = format!("it is {special}, and only files and directories are copied");
        Ok(Source::Refused(Refused::special(why)))
    }
}

impl PlacedFile {
    /// Opens it to be read. It neither waits nor becomes the terminal of this process.
    pub(crate) fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(rustix::fs::CWD, descriptor(self.place.as_fd()), flags, Mode::empty())?;
        Ok(opened.into())
    }

    /// The nine bits of permissions.
    pub(crate) fn permissions(&self) -> u32 {
        self.found.st_mode & 0o777
    }
}

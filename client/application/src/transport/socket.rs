//! The directory of the sockets, and the name of each.
//!
//! A path in the address of a socket has at most 107 bytes. So the directory is opened once, and sockets are
//! named below `/proc/self/fd`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use cohabit_types::AttemptId;
use rustix::fs::{Mode, OFlags, open};
use tokio::net::{UnixListener, UnixStream};

/// The directory of the sockets of an application on this node.
#[derive(Debug)]
pub(crate) struct SocketDirectory(OwnedFd);

impl SocketDirectory {
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn open(path: &Path) -> io::Result<SocketDirectory> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open(path, flags, Mode::empty()).map(SocketDirectory).map_err(|error| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("cannot open the directory {}: {error}", path.display()))
        })
    }

    /// Listens at the socket of this member.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn listen(&self, member: AttemptId) -> io::Result<UnixListener> {
        let path = self.path(member);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        UnixListener::bind(path)
    }

    /// Connects to the socket of this member.
    ///
    /// # Errors
    /// `ConnectionRefused` or `NotFound` if nobody listens there.
    pub(crate) async fn connect(&self, member: AttemptId) -> io::Result<UnixStream> {
        UnixStream::connect(self.path(member)).await
    }

    fn path(&self, member: AttemptId) -> PathBuf {
        let AttemptId { job, attempt } = member;
        format!("/proc/self/fd/{}/{job}-{attempt}", self.0.as_raw_fd()).into()
    }
}

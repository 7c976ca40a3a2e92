//! The directory of the sockets, and the name of each.
//!
//! A path in the address of a socket has at most 107 bytes. So the directory is opened once, and sockets are
//! named below `/proc/self/fd`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net;
use std::path::{Path, PathBuf};

use cohabit_types::RankId;
use rustix::fs::{Mode, OFlags, open};
use tokio::net::{UnixListener, UnixStream};

/// Which socket of the directory. Those of members begin with a digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketName {
    Member(RankId),
    /// That at which a member takes its connections from other nodes.
    HandOver(RankId),
    /// That of the store of the node.
    Store,
}

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

    /// Listens at this socket.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn listen(&self, name: impl Into<SocketName>) -> io::Result<UnixListener> {
        UnixListener::from_std(self.bind(name)?)
    }

    /// Makes this socket, for a listener on another thread.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn bind(&self, name: impl Into<SocketName>) -> io::Result<net::UnixListener> {
        let path = self.path(name.into());
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = net::UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Connects to this socket.
    ///
    /// # Errors
    /// `ConnectionRefused` or `NotFound` if nobody listens there.
    pub(crate) async fn connect(&self, name: impl Into<SocketName>) -> io::Result<UnixStream> {
        UnixStream::connect(self.path(name.into())).await
    }

    fn path(&self, name: SocketName) -> PathBuf {
        let directory = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        match name {
            SocketName::Member(member) => format!("{directory}/{}", of_member(member)),
            SocketName::HandOver(member) => format!("{directory}/{}-network", of_member(member)),
            SocketName::Store => format!("{directory}/store"),
        }
        .into()
    }
}

/// The name of the socket of a member.
fn of_member(RankId { attempt, rank }: RankId) -> String {
    format!("{}-{}-{rank}", attempt.job, attempt.attempt)
}

impl From<RankId> for SocketName {
    fn from(member: RankId) -> SocketName {
        SocketName::Member(member)
    }
}

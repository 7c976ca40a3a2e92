//! What a worker daemon gives one of its executors to do: the folder of a rank, a connection to itself, and
//! with the first rank the socket at which later daemons are heard. One message for each rank, and the end of
//! the line means that nobody has anything to do any more.
//!
//! An executor holds one rank at a time. Those that run in a hurry one after the other may have the same
//! executor: to start a process of our own size for each would cost more than most of them take.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::iter;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::cmsg_space;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

/// The longest path of a folder that can be told.
const MAX_PATH_LENGTH: usize = 4096;

/// The most sockets that come with a rank.
const MAX_SOCKETS: usize = 2;

/// A rank to be held.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) folder: PathBuf,
    /// To the daemon that gives it.
    pub(crate) connection: UnixStream,
    /// Bound in the folder. It comes with the first rank, and lies in the folders of the others after that.
    pub(crate) listener: Option<UnixListener>,
}

/// The daemon's end of the line to one executor.
#[derive(Debug)]
pub(crate) struct Assigner(OwnedFd);

/// The executor's end.
#[derive(Debug)]
pub(crate) struct Assignments(UnixDatagram);

/// A line, and its other end for the standard input of an executor.
pub(crate) fn line() -> io::Result<(Assigner, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((Assigner(ours), theirs))
}

impl Assigner {
    /// Gives the rank of this folder to the executor, which must have nothing else to do.
    ///
    /// # Errors
    /// When the executor is gone.
    pub(crate) fn assign(
        &self,
        folder: &Path,
        connection: &UnixStream,
        listener: Option<&UnixListener>,
    ) -> io::Result<()> {
        let sockets: Vec<_> = iter::once(connection.as_fd()).chain(listener.map(AsFd::as_fd)).collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_SOCKETS))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        attached.push(SendAncillaryMessage::ScmRights(&sockets));
        let text = [IoSlice::new(folder.as_os_str().as_bytes())];
        sendmsg(&self.0, &text, &mut attached, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        Ok(())
    }
}

impl Assignments {
    /// What comes over this end of a line.
    pub(crate) fn over(end: OwnedFd) -> io::Result<Assignments> {
        let end = std::os::unix::net::UnixDatagram::from(end);
        end.set_nonblocking(true)?;
        UnixDatagram::from_std(end).map(Assignments)
    }

    /// Takes no more ranks: the daemon cannot assign another.
    pub(crate) fn refuse(&self) -> io::Result<()> {
        shutdown(&self.0, Shutdown::Both).map_err(io::Error::from)
    }

    /// The next rank; none when the daemon wants nothing more, or is gone.
    pub(crate) async fn next(&self) -> io::Result<Option<Assignment>> {
        self.0.async_io(Interest::READABLE, || receive(self.0.as_fd())).await
    }
}

fn receive(end: BorrowedFd<'_>) -> io::Result<Option<Assignment>> {
    let mut text = [0; MAX_PATH_LENGTH];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_SOCKETS))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(end, &mut [IoSliceMut::new(&mut text)], &mut attached, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let sockets = attached.drain().filter_map(|message| {
        if let RecvAncillaryMessage::ScmRights(sockets) = message { Some(sockets) } else { None }
    });
    let mut sockets = sockets.flatten();
    let connection = sockets.next().ok_or_else(|| io::Error::other("a rank came without a connection"))?;
    let folder = OsStr::from_bytes(&text[..received.bytes]).into();
    Ok(Some(Assignment { folder, connection: connection.into(), listener: sockets.next().map(Into::into) }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[tokio::test]
    async fn ranks_come_one_by_one_and_the_end_of_the_line_after_them() {
        let folder = tempfile::tempdir().unwrap();
        let (assigner, end) = line().unwrap();
        let assignments = Assignments::over(end).unwrap();
        let [first, second] = ["1", "2"].map(|name| folder.path().join(name));
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        assigner.assign(&first, &theirs, Some(&UnixListener::bind(&first).unwrap())).unwrap();
        assigner.assign(&second, &theirs, None).unwrap();
        drop(assigner);
        let mut assignment = assignments.next().await.unwrap().unwrap();
        assert!(assignment.folder == first && assignment.listener.is_some());
        UnixStream::connect(&first).unwrap();
        assignment.connection.write_all(b"here").unwrap();
        ours.read_exact(&mut [0; 4]).unwrap();
        let assignment = assignments.next().await.unwrap().unwrap();
        assert!(assignment.folder == second && assignment.listener.is_none());
        assert!(assignments.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_executor_that_is_gone_or_wants_no_more_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (_ours, theirs) = UnixStream::pair().unwrap();
        let refused = |assigner: &Assigner| assigner.assign(folder.path(), &theirs, None).unwrap_err().kind();
        let (assigner, end) = line().unwrap();
        drop(end);
        assert_eq!(refused(&assigner), io::ErrorKind::BrokenPipe);
        let (assigner, end) = line().unwrap();
        let assignments = Assignments::over(end).unwrap();
        assignments.refuse().unwrap();
        assert_eq!(refused(&assigner), io::ErrorKind::BrokenPipe);
        assert!(assignments.next().await.unwrap().is_none());
    }
}

//! What a worker daemon gives one of its executors to do: the folder of a rank, and the socket that listens
//! in it. One message for each rank, and the end of the line means that nobody has anything to do any more.
//!
//! An executor holds one rank at a time. Those that run in a hurry one after the other may have the same
//! executor: to start a process of our own size for each would cost more than most of them take.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
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
const LONGEST_PATH: usize = 4096;

/// A rank to be held.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) folder: PathBuf,
    /// Bound in the folder.
    pub(crate) listener: UnixListener,
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
    pub(crate) fn assign(&self, folder: &Path, listener: &UnixListener) -> io::Result<()> {
        let sockets = [listener.as_fd()];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
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
    let mut text = [0; LONGEST_PATH];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(end, &mut [IoSliceMut::new(&mut text)], &mut attached, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let socket = attached.drain().find_map(|message| {
        if let RecvAncillaryMessage::ScmRights(mut sockets) = message { sockets.next() } else { None }
    });
    let socket = socket.ok_or_else(|| io::Error::other("a rank came without its socket"))?;
    let folder = OsStr::from_bytes(&text[..received.bytes]).into();
    Ok(Some(Assignment { folder, listener: socket.into() }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn ranks_come_one_by_one_and_the_end_of_the_line_after_them() {
        let folder = tempfile::tempdir().unwrap();
        let (assigner, end) = line().unwrap();
        let assignments = Assignments::over(end).unwrap();
        for name in ["1", "2"] {
            let path = folder.path().join(name);
            assigner.assign(&path, &UnixListener::bind(&path).unwrap()).unwrap();
        }
        drop(assigner);
        for name in ["1", "2"] {
            let assignment = assignments.next().await.unwrap().unwrap();
            assert_eq!(assignment.folder, folder.path().join(name));
            UnixStream::connect(folder.path().join(name)).unwrap();
        }
        assert!(assignments.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_executor_that_is_gone_or_wants_no_more_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let refused = |assigner: &Assigner| assigner.assign(folder.path(), &listener).unwrap_err().kind();
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

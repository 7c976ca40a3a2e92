//! The channel by which a worker daemon assigns ranks to one of its executors.
//!
//! Each rank is one datagram: the path of its directory, with a connection to the daemon attached, for the
//! first rank the listening socket for later daemons, and for a rank of an application the file that it will
//! find on its standard input. The end of the channel means that no rank will follow. A path is absolute, so
//! a datagram that does not begin with `/` is of a later version. The daemon that assigns a rank has started
//! the executor itself, so both are of one version.
//!
//! An executor runs one rank at a time. Short ranks may use the same executor one after the other, because
//! starting a process of our size takes longer than many of them run.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::iter;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::cmsg_space;
use rustix::fs::{FileType, fstat};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

/// The environment variable that tells an executor how many files its rank may have open. The daemon itself
/// may have more.
pub const OPEN_FILES: &str = "COHABIT_OPEN_FILES";

/// The longest path that can be sent.
const MAX_PATH_LENGTH: usize = 4096;

/// The most sockets and files attached to a rank.
const MAX_ATTACHED: usize = 3;

/// A rank to run.
#[derive(Debug)]
pub struct Assignment {
    /// The rank's directory.
    pub directory: PathBuf,
    /// The connection to the daemon that assigns it.
    pub connection: UnixStream,
    /// The executor's listening socket, bound in the directory. Comes with the first rank; its file then
    /// moves to the directory of each following rank.
    pub listener: Option<UnixListener>,
    /// The standard input of the rank, where it is not empty.
    pub input: Option<OwnedFd>,
}

/// The daemon's end of the channel to one executor.
#[derive(Debug)]
pub struct Assigner(OwnedFd);

/// The executor's end.
#[derive(Debug)]
pub struct Assignments(UnixDatagram);

/// A channel: the daemon's end, and the other end for the standard input of an executor.
///
/// # Errors
/// When the sockets cannot be created.
pub fn assignment_channel() -> io::Result<(Assigner, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((Assigner(ours), theirs))
}

impl Assigner {
    /// Assigns the rank of this directory to the executor, which must be idle.
    ///
    /// # Errors
    /// When the executor is gone.
    pub fn assign(
        &self,
        directory: &Path,
        connection: &UnixStream,
        listener: Option<&UnixListener>,
        input: Option<&OwnedFd>,
    ) -> io::Result<()> {
        let others = listener.map(AsFd::as_fd).into_iter().chain(input.map(AsFd::as_fd));
        let attachments: Vec<_> = iter::once(connection.as_fd()).chain(others).collect();
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_ATTACHED))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        attached.push(SendAncillaryMessage::ScmRights(&attachments));
        let text = [IoSlice::new(directory.as_os_str().as_bytes())];
        sendmsg(&self.0, &text, &mut attached, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        Ok(())
    }
}

impl Assignments {
    /// Receives from this end of a channel.
    ///
    /// # Errors
    /// When the socket cannot be used asynchronously.
    pub fn new(end: OwnedFd) -> io::Result<Assignments> {
        let end = std::os::unix::net::UnixDatagram::from(end);
        end.set_nonblocking(true)?;
        UnixDatagram::from_std(end).map(Assignments)
    }

    /// Refuses further ranks.
    ///
    /// # Errors
    /// When the socket cannot be shut down.
    pub fn refuse(&self) -> io::Result<()> {
        shutdown(&self.0, Shutdown::Both).map_err(io::Error::from)
    }

    /// The next rank; `None` when the daemon has closed the channel or is gone.
    ///
    /// # Errors
    /// When the datagram cannot be received, or is of a later version.
    pub async fn next(&self) -> io::Result<Option<Assignment>> {
        self.0.async_io(Interest::READABLE, || receive(self.0.as_fd())).await
    }
}

fn receive(end: BorrowedFd<'_>) -> io::Result<Option<Assignment>> {
    let mut text = [0; MAX_PATH_LENGTH];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_ATTACHED))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(end, &mut [IoSliceMut::new(&mut text)], &mut attached, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let attached = attached.drain().filter_map(|message| {
        if let RecvAncillaryMessage::ScmRights(attached) = message { Some(attached) } else { None }
    });
    let (sockets, files): (Vec<OwnedFd>, Vec<OwnedFd>) = attached.flatten().partition(is_socket);
    let mut sockets = sockets.into_iter();
    let connection =
        sockets.next().ok_or_else(|| io::Error::other("a rank was assigned without a connection"))?;
    let directory = PathBuf::from(OsStr::from_bytes(&text[..received.bytes]));
    if !directory.is_absolute() {
        return Err(io::Error::other("the daemon that assigned a rank is of a later version of Cohabit"));
    }
    Ok(Some(Assignment {
        directory,
        connection: connection.into(),
        listener: sockets.next().map(Into::into),
        input: files.into_iter().next(),
    }))
}

fn is_socket(attached: &OwnedFd) -> bool {
    fstat(attached).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Socket)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::*;

    #[tokio::test]
    async fn ranks_arrive_one_by_one_and_then_the_end_of_the_channel() {
        let folder = tempfile::tempdir().unwrap();
        let (assigner, end) = assignment_channel().unwrap();
        let assignments = Assignments::new(end).unwrap();
        let [first, second] = ["1", "2"].map(|name| folder.path().join(name));
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        assigner.assign(&first, &theirs, Some(&UnixListener::bind(&first).unwrap()), None).unwrap();
        let input = File::open("/proc/self/stat").unwrap().into();
        assigner.assign(&second, &theirs, None, Some(&input)).unwrap();
        drop(assigner);
        let mut assignment = assignments.next().await.unwrap().unwrap();
        assert!(assignment.directory == first && assignment.listener.is_some() && assignment.input.is_none());
        UnixStream::connect(&first).unwrap();
        assignment.connection.write_all(b"here").unwrap();
        ours.read_exact(&mut [0; 4]).unwrap();
        let assignment = assignments.next().await.unwrap().unwrap();
        assert!(
            assignment.directory == second && assignment.listener.is_none() && assignment.input.is_some()
        );
        assert!(assignments.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_executor_that_is_gone_or_refuses_takes_no_rank() {
        let folder = tempfile::tempdir().unwrap();
        let (_ours, theirs) = UnixStream::pair().unwrap();
        let refused =
            |assigner: &Assigner| assigner.assign(folder.path(), &theirs, None, None).unwrap_err().kind();
        let (assigner, end) = assignment_channel().unwrap();
        drop(end);
        assert_eq!(refused(&assigner), io::ErrorKind::BrokenPipe);
        let (assigner, end) = assignment_channel().unwrap();
        let assignments = Assignments::new(end).unwrap();
        assignments.refuse().unwrap();
        assert_eq!(refused(&assigner), io::ErrorKind::BrokenPipe);
        assert!(assignments.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_datagram_that_is_no_absolute_path_is_refused() {
        let (assigner, end) = assignment_channel().unwrap();
        let (_ours, theirs) = UnixStream::pair().unwrap();
        assigner.assign(Path::new("{\"version\":3}"), &theirs, None, None).unwrap();
        let refusal = Assignments::new(end).unwrap().next().await.unwrap_err().to_string();
        assert!(refusal.contains("later version"), "{refusal}");
    }
}

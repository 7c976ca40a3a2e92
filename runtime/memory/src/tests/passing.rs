//! Descriptors travel one with each message; more are closed.

use std::fs::File;
use std::io::{ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::kit::{pattern, sealed};
use super::processes::{in_a_process_of_its_own, open_fds};
use crate::{SealedMemory, receive_message, send_message};

#[test]
fn memory_travels_with_bytes() {
    let (one, other) = UnixStream::pair().unwrap();
    let bytes = pattern(10_000);
    let memory = sealed(&bytes);
    assert_eq!(send_message(&one, b"object 7", Some(memory.as_fd())).unwrap(), 8);
    assert_eq!(send_message(&one, b"no object", None).unwrap(), 9);
    drop(memory);
    drop(one);
    let mut into = [0; 100];
    let received = receive_message(&other, &mut into).unwrap();
    assert_eq!(into[..received.length], *b"object 7", "a descriptor ends a message");
    let fd = received.fd.unwrap();
    assert!(fcntl_getfd(&fd).unwrap().contains(FdFlags::CLOEXEC));
    assert_eq!(&*SealedMemory::from_fd(fd, 10_000).unwrap().map().unwrap(), bytes);
    let received = receive_message(&other, &mut into).unwrap();
    assert_eq!((&into[..received.length], received.fd.is_none()), (&b"no object"[..], true));
    let received = receive_message(&other, &mut into).unwrap();
    assert_eq!((received.length, received.fd.is_none()), (0, true), "the other end was closed");
}

#[test]
fn errors_of_sockets_are_those_of_the_kernel() {
    let (one, other) = UnixStream::pair().unwrap();
    other.set_nonblocking(true).unwrap();
    assert_eq!(receive_message(&other, &mut [0; 9]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let refused = send_message(&one, b"", Some(one.as_fd())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    drop(other);
    assert_eq!(send_message(&one, b"x", None).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

fn send_many(socket: &UnixStream, fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(9))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    assert!(attached.push(SendAncillaryMessage::ScmRights(fds)));
    sendmsg(socket, &[IoSlice::new(b"x")], &mut attached, SendFlags::empty()).unwrap();
}

#[test]
fn surplus_descriptors_are_closed() {
    in_a_process_of_its_own("tests::passing::receiving_surplus_descriptors");
}

#[test]
#[ignore = "it counts the descriptors of its process: another test starts it in its own"]
fn receiving_surplus_descriptors() {
    let (one, other) = UnixStream::pair().unwrap();
    let file = File::open("/dev/null").unwrap();
    let before = open_fds();
    for count in [2, 3, 9] {
        send_many(&one, &vec![file.as_fd(); count]);
        let refused = receive_message(&other, &mut [0; 9]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidData);
        assert_eq!(open_fds(), before);
    }
    send_many(&one, &[file.as_fd()]);
    let received = receive_message(&other, &mut [0; 9]).unwrap();
    assert_eq!((received.length, open_fds()), (1, before + 1));
    drop(received);
    assert_eq!(open_fds(), before);
}

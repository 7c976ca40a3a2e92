//! Passes connections from other nodes to the process of this node that they are for.
//!
//! The process with the port of the node knows from the greeting whom a connection is for, and no more. It
//! sends the descriptor; the process that gets it asks for the key of the application itself.

use std::net;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use bytes::BytesMut;
use cohabit_memory::{receive_message, send_message};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::connection::LONGEST_HELLO;
use super::frame_codec::{ReceivedFrames, append_frame};
use super::hello::HandOverHello;
use super::link_failure::LinkFailure;
use super::listener::{HelloCheck, check_account};
use super::network_admission::in_time;
use super::socket::{SocketDirectory, SocketName};
use super::stranger::{ACCEPT_PAUSE, Stranger, StrangerLimit, StrangerPermit};

/// Passes a connection to the process that it is for.
///
/// # Errors
/// If the process does not take it.
pub(super) async fn hand_over(
    directory: &SocketDirectory,
    hello: HandOverHello,
    connection: &TcpStream,
) -> Result<(), LinkFailure> {
    let stream = directory.connect(SocketName::HandOver(hello.to)).await?;
    check_account(&stream)?;
    let mut bytes = Vec::new();
    append_frame(&hello, LONGEST_HELLO, &mut bytes)?;
    let (mut sent, mut descriptor) = (0, Some(connection.as_fd()));
    while sent < bytes.len() {
        let send = || send_message(&stream, &bytes[sent..], descriptor);
        sent += stream.async_io(Interest::WRITABLE, send).await?;
        // It has gone with the first byte.
        descriptor = None;
    }
    Ok(())
}

/// Takes connections from the process with the port for ever, and passes them on.
pub(crate) async fn accept_handed_over(
    listener: UnixListener,
    check: HelloCheck,
    taken: impl Fn(Stranger) + 'static,
) {
    let (taken, strangers) = (Rc::new(taken), StrangerLimit::new());
    loop {
        let permit = strangers.room().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection over");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let taken = Rc::clone(&taken);
        spawn_local(async move {
            match in_time(take_over(&stream, &check, permit)).await {
                Ok(stranger) => taken(stranger),
                Err(error) => tracing::warn!(%error, "cannot take a connection over"),
            }
        });
    }
}

/// Receives one connection.
async fn take_over(
    stream: &UnixStream,
    check: &HelloCheck,
    permit: StrangerPermit,
) -> Result<Stranger, LinkFailure> {
    check_account(stream)?;
    let (mut buffer, mut connection) = (BytesMut::new(), None::<OwnedFd>);
    loop {
        let mut bytes = [0; LONGEST_HELLO];
        let received = stream.async_io(Interest::READABLE, || receive_message(stream, &mut bytes)).await?;
        if received.length == 0 {
            return Err(LinkFailure::Broken(std::io::ErrorKind::UnexpectedEof.into()));
        }
        buffer.extend_from_slice(&bytes[..received.length]);
        connection = received.fd.or(connection);
        if let Some(hello) = ReceivedFrames::new(&buffer, LONGEST_HELLO).take::<HandOverHello>()? {
            check.check(&hello)?;
            let missing = || LinkFailure::Protocol("no connection came with it".into());
            let connection = net::TcpStream::from(connection.ok_or_else(missing)?);
            return Ok(Stranger::new(connection, permit)?);
        }
    }
}

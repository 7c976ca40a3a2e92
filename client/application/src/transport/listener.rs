//! Lets in the processes of the application on this node, and nobody else.
//!
//! The directory of the sockets is closed to other accounts, and the kernel names the account at the other
//! end. Where all users share an account, the secret of the application tells its processes from others.

use std::io;
use std::rc::Rc;

use bytes::BytesMut;
use cohabit_types::{ApplicationSecret, RankId};
use rustix::process::geteuid;
use subtle::ConstantTimeEq;
use tokio::io::AsyncRead;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::connection::read_hello;
use super::hello::ConnectionHello;
use super::link_failure::LinkFailure;
use super::stranger::{ACCEPT_PAUSE, HELLO_TIMEOUT, StrangerLimit};

/// What a process has to show, and for whom its connection is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HelloCheck {
    pub(crate) secret: ApplicationSecret,
    pub(crate) own: RankId,
}

/// Accepts connections for ever, and passes on those of processes of the application, with what they said and
/// what was read after it.
pub(crate) async fn accept_members<H: ConnectionHello>(
    listener: UnixListener,
    check: HelloCheck,
    accepted: impl Fn(UnixStream, BytesMut, H) + 'static,
) {
    let (accepted, strangers) = (Rc::new(accepted), StrangerLimit::new());
    loop {
        let permit = strangers.room().await;
        let mut stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let accepted = Rc::clone(&accepted);
        spawn_local(async move {
            let mut buffer = BytesMut::new();
            match timeout(HELLO_TIMEOUT, check.admit(&mut stream, &mut buffer)).await {
                Ok(Ok(hello)) => {
                    drop(permit);
                    accepted(stream, buffer, hello);
                }
                Ok(Err(error)) => tracing::warn!(%error, "refused a connection"),
                Err(_) => tracing::warn!("a connection did not say in time whose it is"),
            }
        });
    }
}

impl HelloCheck {
    async fn admit<H: ConnectionHello>(
        &self,
        stream: &mut UnixStream,
        buffer: &mut BytesMut,
    ) -> Result<H, LinkFailure> {
        check_account(stream)?;
        self.read_hello(stream, buffer).await
    }

    /// Reads the first frame of a connection, whose other end was checked.
    ///
    /// # Errors
    /// If the connection breaks, or the frame is not one of a process that wants this one.
    pub(super) async fn read_hello<H: ConnectionHello>(
        &self,
        stream: &mut (impl AsyncRead + Unpin),
        buffer: &mut BytesMut,
    ) -> Result<H, LinkFailure> {
        let hello: H = read_hello(stream, buffer).await?;
        self.check(&hello)?;
        Ok(hello)
    }

    /// # Errors
    /// If this is not what a process says that wants this one.
    pub(super) fn check(&self, hello: &impl ConnectionHello) -> Result<(), LinkFailure> {
        if !bool::from(hello.secret().0.ct_eq(&self.secret.0)) {
            return Err(LinkFailure::Protocol("it does not know the secret of the application".into()));
        }
        match hello.to() {
            Some(to) if to != self.own => Err(LinkFailure::Protocol(format!("it is for {to}"))),
            Some(_) | None => Ok(()),
        }
    }
}

/// Checks that a process of the account of this one is at the other end.
///
/// # Errors
/// If it is not.
pub(super) fn check_account(stream: &UnixStream) -> Result<(), LinkFailure> {
    let (own, other) = (geteuid().as_raw(), stream.peer_cred()?.uid());
    match own == other {
        true => Ok(()),
        false => {
            let text = format!("user {other} is at the other end of a socket of user {own}");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, text).into())
        }
    }
}

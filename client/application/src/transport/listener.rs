//! Lets in the processes of the application, and nobody else; and dials them.
//!
//! The directory of the sockets is closed to other accounts, and the kernel names the account at the other
//! end. Where all users share an account, the secret of the application tells its processes from others.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use cohabit_application_core::SessionHello;
use cohabit_types::{ApplicationSecret, AttemptId};
use rustix::process::geteuid;
use subtle::ConstantTimeEq;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use super::connection::{LONGEST_HELLO, read_hello};
use super::frame_codec::append_frame;
use super::hello::{ConnectionHello, MemberHello};
use super::link_failure::LinkFailure;
use super::socket::SocketDirectory;

/// How many connections may be open that have not said who they are.
const MOST_STRANGERS: usize = 64;

/// How long one may take to say it.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after the system refused a connection, as when no more files may be open.
const PAUSE: Duration = Duration::from_millis(50);

/// What a process has to show, and for whom its connection is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HelloCheck {
    pub(crate) secret: ApplicationSecret,
    pub(crate) own: AttemptId,
}

/// Accepts connections for ever, and passes on those of processes of the application, with what they said and
/// what was read after it.
pub(crate) async fn accept_members<H: ConnectionHello>(
    listener: UnixListener,
    check: HelloCheck,
    accepted: impl Fn(UnixStream, BytesMut, H) + 'static,
) {
    let (accepted, strangers) = (Rc::new(accepted), Arc::new(Semaphore::new(MOST_STRANGERS)));
    loop {
        let Ok(permit) = Arc::clone(&strangers).acquire_owned().await else { return };
        let mut stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(PAUSE).await;
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
        let hello: H = read_hello(stream, buffer).await?;
        if !bool::from(hello.secret().0.ct_eq(&self.secret.0)) {
            return Err(LinkFailure::Protocol("it does not know the secret of the application".into()));
        }
        match hello.to() == self.own {
            true => Ok(hello),
            false => Err(LinkFailure::Protocol(format!("it is for {}", hello.to()))),
        }
    }
}

/// Connects to the process that `hello` is for, and says it. Returns the answer, with what was read after it.
///
/// # Errors
/// If nobody listens, or the other end closes the connection without an answer.
pub(crate) async fn dial(
    directory: &SocketDirectory,
    hello: MemberHello,
) -> Result<(UnixStream, BytesMut, SessionHello), LinkFailure> {
    let mut stream = directory.connect(hello.hello.to).await?;
    introduce(&mut stream, &hello).await?;
    let mut buffer = BytesMut::new();
    let answer = read_hello(&mut stream, &mut buffer).await?;
    Ok((stream, buffer, answer))
}

/// Says who this process is on a connection that it dialed, if a process of its own account is at the other
/// end.
///
/// # Errors
/// If it is not, or the connection breaks.
pub(crate) async fn introduce(
    stream: &mut UnixStream,
    hello: &impl ConnectionHello,
) -> Result<(), LinkFailure> {
    check_account(stream)?;
    let mut bytes = Vec::new();
    append_frame(hello, LONGEST_HELLO, &mut bytes)?;
    Ok(stream.write_all(&bytes).await?)
}

fn check_account(stream: &UnixStream) -> Result<(), LinkFailure> {
    let (own, other) = (geteuid().as_raw(), stream.peer_cred()?.uid());
    match own == other {
        true => Ok(()),
        false => {
            let text = format!("user {other} is at the other end of a socket of user {own}");
            Err(io::Error::new(io::ErrorKind::PermissionDenied, text).into())
        }
    }
}

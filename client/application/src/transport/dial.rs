//! Dials the processes of the application.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use cohabit_application_core::SessionHello;
use cohabit_net::{ApplicationStream, ApplicationTls};
use cohabit_types::Rendezvous;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::connection::{LONGEST_HELLO, read_hello};
use super::frame_codec::append_frame;
use super::greeting::{GreetingKind, NetworkGreeting};
use super::hello::{ConnectionHello, MemberHello, StoreHello};
use super::link_failure::LinkFailure;
use super::listener::check_account;
use super::member_stream::MemberStream;
use super::socket::SocketDirectory;

/// How long it may take to reach another node, and for its process to answer: that of both steps there.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection on which the other end has answered the hello.
#[derive(Debug)]
pub(crate) struct DialedConnection {
    pub(crate) stream: MemberStream,
    /// What was read after the answer.
    pub(crate) buffer: BytesMut,
    pub(crate) answer: SessionHello,
}

/// Connects to the process of this node that `hello` is for, and says it.
///
/// # Errors
/// If nobody listens, or the other end closes the connection without an answer.
pub(crate) async fn dial_here(
    directory: &SocketDirectory,
    hello: &MemberHello,
) -> Result<DialedConnection, LinkFailure> {
    let mut stream = directory.connect(hello.hello.to).await?;
    introduce(&mut stream, hello).await?;
    let mut buffer = BytesMut::new();
    let answer = read_hello(&mut stream, &mut buffer).await?;
    Ok(DialedConnection { stream: stream.into(), buffer, answer })
}

/// Connects to the process that `hello` is for, whose node is reached there, and says it.
///
/// # Errors
/// If it cannot be reached, or does not answer as a process of the application in time.
pub(crate) async fn dial_there(
    at: &Rendezvous,
    tls: &ApplicationTls,
    hello: &MemberHello,
) -> Result<DialedConnection, LinkFailure> {
    let greeting = NetworkGreeting { to: hello.hello.to, kind: GreetingKind::Session };
    in_time(async {
        let mut stream = open(at, tls, greeting, hello).await?;
        let mut buffer = BytesMut::new();
        let answer = read_hello(&mut stream, &mut buffer).await?;
        Ok(DialedConnection { stream: stream.into(), buffer, answer })
    })
    .await
}

/// Connects to the store of the node that is reached there, and says `hello`. It sends nothing until it is
/// asked.
///
/// # Errors
/// If it cannot be reached in time, or is no process of the application.
pub(crate) async fn dial_objects(
    at: &Rendezvous,
    tls: &ApplicationTls,
    hello: &StoreHello,
) -> Result<ApplicationStream, LinkFailure> {
    let greeting = NetworkGreeting { to: hello.to, kind: GreetingKind::Objects };
    in_time(open(at, tls, greeting, hello)).await
}

/// Limits the time until the other end has answered.
async fn in_time<T>(dialed: impl Future<Output = Result<T, LinkFailure>>) -> Result<T, LinkFailure> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "there was no answer in time");
    timeout(NETWORK_TIMEOUT, dialed).await.map_err(|_late| late())?
}

async fn open(
    at: &Rendezvous,
    tls: &ApplicationTls,
    greeting: NetworkGreeting,
    hello: &impl ConnectionHello,
) -> Result<ApplicationStream, LinkFailure> {
    // Names are resolved on a thread of their own.
    let mut stream = TcpStream::connect((at.address.as_str(), at.port)).await?;
    stream.write_all(&greeting.to_bytes()).await?;
    let mut stream = tls.connect(stream).await?;
    say_hello(&mut stream, hello).await?;
    Ok(stream)
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
    say_hello(stream, hello).await
}

/// Says who this process is on a connection whose other end was checked.
///
/// # Errors
/// If the connection breaks.
async fn say_hello(
    stream: &mut (impl AsyncWrite + Unpin),
    hello: &impl ConnectionHello,
) -> Result<(), LinkFailure> {
    let mut bytes = Vec::new();
    append_frame(hello, LONGEST_HELLO, &mut bytes)?;
    stream.write_all(&bytes).await?;
    Ok(stream.flush().await?)
}

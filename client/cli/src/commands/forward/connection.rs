//! One connection: its bytes in both directions, each of which ends by itself.
//!
//! The next piece is asked for while the one before is written, and nothing else is read ahead: a side that
//! does not read stops the other one.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::time::Duration;

use cohabit_client::types::{
    FORWARD_PIECE, FollowMode, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest,
};
use cohabit_client::{Client, Error};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::commands::absence::while_away;

/// How often the worker hears that this end is there, while it sends nothing more.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// Why a connection ended before both directions had.
enum ConnectionEnd {
    /// The program on this machine went away. That is its business.
    Local,
    /// The other end is gone.
    Remote(Error),
}

impl From<io::Error> for ConnectionEnd {
    fn from(_: io::Error) -> ConnectionEnd {
        ConnectionEnd::Local
    }
}

impl From<Error> for ConnectionEnd {
    fn from(error: Error) -> ConnectionEnd {
        ConnectionEnd::Remote(error)
    }
}

/// Opens it on the other side, and carries it to its end. Once the job has ended nothing is sent any more.
///
/// # Errors
/// When the other side cannot be connected to, or was lost. The program on this machine sees a reset then.
pub(super) async fn carry(
    client: &Client,
    mut stream: TcpStream,
    request: ForwardRequest,
    job_end: watch::Receiver<bool>,
) -> Result<(), Error> {
    // Keys leave at once. A connection that does not allow it is as good.
    let _ = stream.set_nodelay(true);
    let ended = match while_away(|| client.open_forward(request)).await {
        Ok(()) => carry_both(client, &mut stream, request.id, job_end).await,
        Err(error) => Err(ConnectionEnd::Remote(error)),
    };
    match ended {
        Ok(()) | Err(ConnectionEnd::Local) => Ok(()),
        Err(ConnectionEnd::Remote(error)) => {
            // An end in order would look like the end of what the server had to say.
            let _ = stream.set_zero_linger();
            Err(error)
        }
    }
}

async fn carry_both(
    client: &Client,
    stream: &mut TcpStream,
    id: ForwardId,
    job_end: watch::Receiver<bool>,
) -> Result<(), ConnectionEnd> {
    let (from, to) = stream.split();
    let (mut sending, mut receiving) = (pin!(send(client, from, id)), pin!(receive(client, to, id)));
    tokio::select! {
        sent = &mut sending => {
            sent?;
            receiving.await.map(drop)
        }
        received = &mut receiving => {
            let position = received?;
            tokio::select! {
                sent = sending => sent,
                Err(error) = stay(client, id, position) => Err(error.into()),
                () = ended(job_end) => Ok(()),
            }
        }
    }
}

/// Writes what the server sends, to its end. Returns how many bytes that were.
async fn receive(client: &Client, mut to: WriteHalf<'_>, id: ForwardId) -> Result<u64, ConnectionEnd> {
    let (mut from, mut last) = (0, ForwardOutput::default());
    while !last.is_last {
        let next = async { Ok(read(client, id, from).await?) };
        let written = async { Ok::<(), ConnectionEnd>(to.write_all(&last.bytes).await?) };
        ((), last) = tokio::try_join!(written, next)?;
        from += last.bytes.len() as u64;
    }
    to.write_all(&last.bytes).await?;
    to.shutdown().await?;
    Ok(from)
}

/// Sends what the program on this machine writes, to its end.
async fn send(client: &Client, mut from: ReadHalf<'_>, id: ForwardId) -> Result<(), ConnectionEnd> {
    let (mut buffer, mut offset, mut is_last) = (vec![0; FORWARD_PIECE], 0, false);
    while !is_last {
        let length = from.read(&mut buffer).await?;
        is_last = length == 0;
        let mut piece = ForwardPiece { id, offset, bytes: buffer[..length].to_vec(), is_last };
        offset += length as u64;
        while write(client, &mut piece).await? < offset {
            // The server reads slowly.
            let wait = ForwardPiece { bytes: Vec::new(), is_last: false, ..piece };
            while_away(|| client.write_forward(wait.clone())).await?;
        }
    }
    Ok(())
}

/// Sends a piece, of which it leaves what the server did not take. Returns how far the server is.
async fn write(client: &Client, piece: &mut ForwardPiece) -> Result<u64, Error> {
    let written = while_away(|| client.write_forward(piece.clone())).await?;
    let taken = usize::try_from(written.saturating_sub(piece.offset)).unwrap_or(usize::MAX);
    piece.bytes.drain(..taken.min(piece.bytes.len()));
    piece.offset = written;
    Ok(written)
}

async fn read(client: &Client, id: ForwardId, from: u64) -> Result<ForwardOutput, Error> {
    while_away(|| client.read_forward(ForwardRead { id, from, at_end: FollowMode::Wait })).await
}

/// Returns when the job has ended.
async fn ended(mut job_end: watch::Receiver<bool>) {
    if job_end.wait_for(|has_ended| *has_ended).await.is_err() {
        pending().await
    }
}

/// Shows the worker that this end is there.
async fn stay(client: &Client, id: ForwardId, position: u64) -> Result<Infallible, Error> {
    loop {
        sleep(SIGN_OF_LIFE).await;
        read(client, id, position).await?;
    }
}

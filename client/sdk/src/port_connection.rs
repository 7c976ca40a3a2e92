//! A connection to a port of a job: its bytes in both directions, each of which ends by itself.
//!
//! The next piece is asked for while the one before is written, and nothing else is read ahead: a side that
//! does not read stops the other one.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::time::Duration;

use cohabit_types::{
    FORWARD_PIECE, FollowMode, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::time::sleep;

use crate::absence::while_away;
use crate::{Client, Error};

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

/// A connection to a port on which a job listens, of which the other side is open.
#[derive(Debug)]
pub struct PortConnection {
    client: Client,
    id: ForwardId,
}

impl Client {
    /// Opens a connection to a port on the loopback address of a rank's node.
    ///
    /// # Errors
    /// As for [`Client::open_forward`].
    pub async fn connect_to_port(&self, request: ForwardRequest) -> Result<PortConnection, Error> {
        while_away(|| self.open_forward(request)).await?;
        Ok(PortConnection { client: self.clone(), id: request.id })
    }
}

impl PortConnection {
    /// Carries what the program at the other end of `stream` and the job say to each other until both have
    /// ended, or that program went away. Once `job_end` is ready nothing is sent any more.
    ///
    /// # Errors
    /// [`Error::Refused`] and others, as for [`Client::read_forward`], when the job's side was lost.
    pub async fn carry(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        job_end: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        match self.carry_both(stream, job_end).await {
            Ok(()) | Err(ConnectionEnd::Local) => Ok(()),
            Err(ConnectionEnd::Remote(error)) => Err(error),
        }
    }

    async fn carry_both(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        job_end: impl Future<Output = ()>,
    ) -> Result<(), ConnectionEnd> {
        let (from, to) = split(stream);
        let (client, id) = (&self.client, self.id);
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
                    () = job_end => Ok(()),
                }
            }
        }
    }
}

/// Writes what the server sends, to its end. Returns how many bytes that were.
async fn receive(
    client: &Client,
    mut to: impl AsyncWrite + Unpin,
    id: ForwardId,
) -> Result<u64, ConnectionEnd> {
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
async fn send(client: &Client, mut from: impl AsyncRead + Unpin, id: ForwardId) -> Result<(), ConnectionEnd> {
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

/// Shows the worker that this end is there.
async fn stay(client: &Client, id: ForwardId, position: u64) -> Result<Infallible, Error> {
    loop {
        sleep(SIGN_OF_LIFE).await;
        read(client, id, position).await?;
    }
}

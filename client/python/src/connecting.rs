//! Connections to ports of jobs, as sockets of this process.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;

use cohabit_client::types::{ForwardId, ForwardPurpose, ForwardRequest, RankId};
use cohabit_client::{Client, PortConnection};
use cohabit_console::{CommandError, CommandErrorKind};
use tokio::net::UnixStream;
use uuid::Uuid;

use crate::answer::NativeAnswer;

/// Opens a connection, which is carried until one of its ends is closed.
pub(crate) async fn connect(client: &Client, rank: RankId, port: u16) -> Result<NativeAnswer, CommandError> {
    let id = ForwardId { rank, number: Uuid::new_v4().as_u64_pair().0 };
    let request = ForwardRequest { id, port, purpose: ForwardPurpose::Connect };
    let connection = client.connect_to_port(request).await?;
    match sockets() {
        Ok((ours, theirs)) => {
            tokio::spawn(carry(client.clone(), connection, id, ours));
            Ok(NativeAnswer::Socket(theirs))
        }
        Err(error) => {
            let _ = client.close_forward(id).await;
            let message = format!("no socket for a connection to a job: {error}");
            Err(CommandError::new(CommandErrorKind::InputOutput, message))
        }
    }
}

/// Both ends of a connection within this process.
fn sockets() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = Socket::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

/// Python learns of each end by the end of its socket.
async fn carry(client: Client, connection: PortConnection, id: ForwardId, mut ours: UnixStream) {
    let _ = connection.carry(&mut ours, pending()).await;
    drop(ours);
    // Its worker closes it by itself, but later.
    let _ = client.close_forward(id).await;
}

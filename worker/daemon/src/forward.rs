//! Connections to the ports of jobs, for clients: opened here, and carried in pieces over the link.
//!
//! A connection outlives the link, not this daemon. Nothing is read that the client did not ask for, and
//! nothing taken that the server does not take at once: both wait in the buffers of the kernel, so that a
//! side that pauses stops the other one.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_types::{
    FORWARD_PIECE, FollowMode, ForwardId, ForwardOutput, ForwardPiece, ForwardPurpose, ForwardRead,
    ForwardRequest, MOST_FORWARDS, Refusal, RefusalCode,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::listening_socket::ListeningSockets;
use crate::state_directory::StateDirectory;

/// The most connections of all jobs at once: each holds a file and a piece.
const MOST_OF_ALL: usize = 512;
/// How long a request waits for bytes, or until the server takes some.
const LONG_POLL: Duration = Duration::from_secs(10);
/// How long a client may be silent: longer than a restart of the head takes.
const LEASE: Duration = Duration::from_secs(60);
/// How long a server may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The most bytes of an answer to a request that does not wait.
const MOST_READ: usize = 1 << 20;
/// The most bytes of an answer to one that waits: the head bounds only how many of the others there are.
const MOST_AWAITED: usize = 64 << 10;

/// The connections; clones are the same. Those that are being opened have their place, but nothing in it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Forwards(Arc<Mutex<HashMap<ForwardId, Option<OpenForward>>>>);

/// The place of a connection that is being opened. It is given back unless it is filled: its client, or the
/// link, may go away meanwhile.
#[derive(Debug)]
struct ReservedForward {
    forwards: Forwards,
    id: ForwardId,
}

/// One of them, with the task that closes it when its client is gone.
#[derive(Debug)]
struct OpenForward {
    connection: Arc<ForwardConnection>,
    reaper: AbortHandle,
}

#[derive(Debug)]
struct ForwardConnection {
    output: tokio::sync::Mutex<ServerOutput>,
    input: tokio::sync::Mutex<ServerInput>,
    /// When its client asked last.
    asked: Mutex<Instant>,
    /// Ends the requests that wait: each holds the socket.
    closed: Notify,
}

/// What the server sends.
#[derive(Debug)]
struct ServerOutput {
    socket: OwnedReadHalf,
    /// How many bytes the client has.
    from: u64,
    /// Those behind them that it may not have got.
    unconfirmed: Vec<u8>,
    is_over: bool,
}

/// What the server gets.
#[derive(Debug)]
struct ServerInput {
    socket: OwnedWriteHalf,
    written: u64,
    is_over: bool,
}

impl Drop for ReservedForward {
    fn drop(&mut self) {
        let mut all = self.forwards.lock();
        if all.get(&self.id).is_some_and(Option::is_none) {
            all.remove(&self.id);
        }
    }
}

impl Drop for OpenForward {
    fn drop(&mut self) {
        self.reaper.abort();
        self.connection.closed.notify_waiters();
    }
}

impl Forwards {
    /// Opens a connection, or says whether that could be done. Does nothing the second time.
    pub(crate) async fn open(&self, state: &StateDirectory, request: ForwardRequest) -> Result<(), Refusal> {
        let ForwardRequest { id, port, purpose } = request;
        if port == 0 {
            return Err(Refusal::new(RefusalCode::Invalid, "no server listens on port 0: name its port"));
        }
        let Some(reserved) = self.reserve(id)? else { return Ok(()) };
        let searched = state.clone();
        let sockets = blocking(move || ListeningSockets::find(&searched, id.rank, port)).await?;
        match purpose {
            ForwardPurpose::Check => return Ok(()),
            ForwardPurpose::Connect => {}
        }
        let connected = timeout(CONNECT_LIMIT, TcpStream::connect(sockets.address)).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(|error| {
            let message = format!(
                "the server on port {port} of the node of job {} does not answer: {error}",
                id.rank.attempt.job
            );
            Refusal::new(RefusalCode::WrongState, message)
        })?;
        // Another program may have taken the port since the look.
        if !blocking(move || sockets.listen_still()).await {
            let message = format!(
                "another server listens on port {port} of the node of job {} now",
                id.rank.attempt.job
            );
            return Err(Refusal::new(RefusalCode::WrongState, message));
        }
        // Small pieces, such as keys, leave at once. A connection that does not allow it is as good.
        let _ = stream.set_nodelay(true);
        reserved.fill(stream)
    }

    /// Bytes from the server.
    pub(crate) async fn read(&self, read: ForwardRead) -> Result<ForwardOutput, Refusal> {
        let connection = self.find(read.id)?;
        tokio::select! {
            output = async { connection.output.lock().await.read(read).await } => output,
            () = connection.closed.notified() => Err(gone(read.id)),
        }
    }

    /// Bytes to the server.
    pub(crate) async fn write(&self, piece: ForwardPiece) -> Result<u64, Refusal> {
        if piece.bytes.len() > FORWARD_PIECE {
            let message = format!("a piece has at most {FORWARD_PIECE} bytes, not {}", piece.bytes.len());
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        let connection = self.find(piece.id)?;
        tokio::select! {
            written = async { connection.input.lock().await.write(&piece).await } => written,
            () = connection.closed.notified() => Err(gone(piece.id)),
        }
    }

    /// Closes it, if it is open.
    pub(crate) fn close(&self, id: ForwardId) {
        self.lock().remove(&id);
    }

    /// The connection, whose client is there.
    fn find(&self, id: ForwardId) -> Result<Arc<ForwardConnection>, Refusal> {
        let found = self.lock().get(&id).and_then(Option::as_ref).map(|open| Arc::clone(&open.connection));
        let connection = found.ok_or_else(|| gone(id))?;
        *connection.asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(connection)
    }

    /// A place for one more; nothing if it is open already.
    fn reserve(&self, id: ForwardId) -> Result<Option<ReservedForward>, Refusal> {
        let mut all = self.lock();
        match all.get(&id) {
            Some(Some(_)) => return Ok(None),
            Some(None) => {
                let message = format!("a connection to a port of {} is being opened: try again", id.rank);
                return Err(Refusal::new(RefusalCode::Unavailable, message));
            }
            None => {}
        }
        let of_rank = all.keys().filter(|other| other.rank == id.rank).count();
        if all.len() >= MOST_OF_ALL || of_rank >= MOST_FORWARDS {
            let message = format!(
                "{of_rank} connections to the ports of {} are open, and {} to those of all jobs of its worker; \
                 there may be {MOST_FORWARDS} and {MOST_OF_ALL}: close some",
                id.rank,
                all.len()
            );
            return Err(Refusal::new(RefusalCode::Limit, message));
        }
        all.insert(id, None);
        Ok(Some(ReservedForward { forwards: self.clone(), id }))
    }

    /// Closes the connection when its client has been silent for too long.
    async fn reap(self, id: ForwardId, connection: Arc<ForwardConnection>) {
        loop {
            let end = *connection.asked.lock().unwrap_or_else(PoisonError::into_inner) + LEASE;
            if end <= Instant::now() {
                return self.close(id);
            }
            sleep_until(end).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ForwardId, Option<OpenForward>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedForward {
    /// Keeps the connection, unless it was closed while it was opened.
    fn fill(self, stream: TcpStream) -> Result<(), Refusal> {
        let connection = Arc::new(ForwardConnection::new(stream));
        let mut all = self.forwards.lock();
        let Some(place @ None) = all.get_mut(&self.id) else {
            let message = format!("the connection to a port of {} was closed meanwhile", self.id.rank);
            return Err(Refusal::new(RefusalCode::NotFound, message));
        };
        let reap = self.forwards.clone().reap(self.id, Arc::clone(&connection));
        let reaper = tokio::spawn(reap).abort_handle();
        *place = Some(OpenForward { connection, reaper });
        Ok(())
    }
}

impl ForwardConnection {
    fn new(stream: TcpStream) -> ForwardConnection {
        let (from, to) = stream.into_split();
        let output = ServerOutput { socket: from, from: 0, unconfirmed: Vec::new(), is_over: false };
        let input = ServerInput { socket: to, written: 0, is_over: false };
        let asked = Mutex::new(Instant::now());
        ForwardConnection { output: output.into(), input: input.into(), asked, closed: Notify::new() }
    }
}

impl ServerOutput {
    async fn read(&mut self, read: ForwardRead) -> Result<ForwardOutput, Refusal> {
        if read.from == self.from + self.unconfirmed.len() as u64 {
            (self.from, self.unconfirmed) = (read.from, Vec::new());
        } else if read.from != self.from {
            return Err(out_of_order(read.from, self.from));
        }
        if self.unconfirmed.is_empty() && !self.is_over {
            let filled = match read.at_end {
                FollowMode::Return => self.fill(MOST_READ),
                FollowMode::Wait => match timeout(LONG_POLL, self.socket.readable()).await {
                    Ok(ready) => ready.and_then(|()| self.fill(MOST_AWAITED)),
                    Err(_nothing) => Ok(()),
                },
            };
            filled.map_err(|error| broken(read.id, &error))?;
        }
        Ok(ForwardOutput { bytes: self.unconfirmed.clone(), is_last: self.is_over })
    }

    /// Takes what is there, up to this many bytes.
    fn fill(&mut self, most: usize) -> io::Result<()> {
        // What was read before an error is passed on first.
        while self.unconfirmed.len() < most {
            self.unconfirmed.reserve(most - self.unconfirmed.len());
            match self.socket.try_read_buf(&mut self.unconfirmed) {
                Ok(0) => {
                    self.is_over = true;
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) if !self.unconfirmed.is_empty() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl ServerInput {
    async fn write(&mut self, piece: &ForwardPiece) -> Result<u64, Refusal> {
        let repeated = self.written.checked_sub(piece.offset);
        let repeated = repeated.ok_or_else(|| out_of_order(piece.offset, self.written))?;
        let repeated = usize::try_from(repeated).unwrap_or(usize::MAX);
        let rest = piece.bytes.get(repeated..).unwrap_or_default();
        if self.is_over {
            return Ok(self.written);
        }
        if piece.bytes.is_empty() && !piece.is_last {
            // Whether it takes some or the wait is over, the client sends or asks again.
            let _ = timeout(LONG_POLL, self.socket.writable()).await;
            return Ok(self.written);
        }
        let sent = self.send(rest).map_err(|error| broken(piece.id, &error))?;
        if piece.is_last && sent == rest.len() {
            self.socket.shutdown().await.map_err(|error| broken(piece.id, &error))?;
            self.is_over = true;
        }
        Ok(self.written)
    }

    /// Sends as much as the server takes at once; returns how many bytes.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.socket.try_write(&bytes[sent..]) {
                Ok(length) => sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.written += sent as u64;
        Ok(sent)
    }
}

fn gone(id: ForwardId) -> Refusal {
    let message = format!(
        "the connection to a port of {} is gone: its worker was restarted, or its client was silent",
        id.rank
    );
    Refusal::new(RefusalCode::NotFound, message)
}

fn out_of_order(asked: u64, known: u64) -> Refusal {
    let message = format!("byte {asked} of a connection is not the next one, which is {known}");
    Refusal::new(RefusalCode::Invalid, message)
}

fn broken(id: ForwardId, error: &io::Error) -> Refusal {
    let message = format!("the server on a port of {} broke the connection: {error}", id.rank);
    Refusal::new(RefusalCode::WrongState, message)
}

#[cfg(test)]
mod tests;

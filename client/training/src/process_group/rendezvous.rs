//! The rendezvous of ranks: the others connect to the first, send the port they listen on, and receive the
//! addresses of all ranks.
//!
//! The first rank may start last, so the others retry until it listens. Connections of other trainings are
//! rejected. Nothing is encrypted: like torchrun, this trusts the network of the cluster.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ring::Ring;

/// Other ranks may still be starting, or waiting for a slow disk.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Time between attempts to reach the first rank.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for the first message of a connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Size limit of a message, which has a few bytes per rank.
const MAX_LINE_BYTES: u64 = 1 << 18;

/// A rank and the rendezvous that it takes part in.
#[derive(Clone, Debug)]
pub(crate) struct RankRendezvous {
    /// The name of the training, the same for all its ranks.
    pub(crate) name: String,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    /// The host of the first rank.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The first message of a rank.
#[derive(Debug, Serialize, Deserialize)]
struct RankHello {
    name: String,
    rank: u32,
    ranks: u32,
    /// The port on which it listens for the previous rank.
    port: u16,
}

impl RankRendezvous {
    /// Waits for all ranks and connects the ring.
    pub(crate) fn form_ring(&self) -> Result<Ring> {
        let deadline = Instant::now() + TIMEOUT;
        let (listener, addresses) = if self.rank == 0 {
            self.listen_as_first_rank(deadline)?
        } else {
            self.dial_first_rank(deadline)?
        };
        let next = addresses.get((self.rank as usize + 1) % addresses.len());
        let next = TcpStream::connect(next.context("the first rank sent no addresses")?)
            .with_context(|| format!("cannot reach rank {}", (self.rank + 1) % self.ranks))?;
        write_message(&next, &self.hello(0))?;
        let previous = self.accept_rank((self.rank + self.ranks - 1) % self.ranks, &listener, deadline)?;
        Ring::new(self.rank as usize, self.ranks as usize, next, previous)
    }

    /// On the first rank: collects the addresses of all ranks and sends them to all.
    fn listen_as_first_rank(&self, deadline: Instant) -> Result<(TcpListener, Vec<SocketAddr>)> {
        let address = (self.host.as_str(), self.port);
        let entrance = TcpListener::bind(address)
            .with_context(|| format!("cannot listen on MASTER_PORT {} of {}", self.port, self.host))?;
        let listener = TcpListener::bind((entrance.local_addr()?.ip(), 0))?;
        let mut others: Vec<Option<(TcpStream, SocketAddr)>> = (1..self.ranks).map(|_| None).collect();
        while others.iter().any(Option::is_none) {
            let missing = || others.iter().position(Option::is_none).map_or(0, |index| index + 1);
            let (stream, from) =
                accept(&entrance, deadline).with_context(|| format!("rank {} did not connect", missing()))?;
            let Some(hello) = self.read_hello(&stream) else { continue };
            if let Some(other) = others.get_mut((hello.rank as usize).wrapping_sub(1)) {
                *other = Some((stream, SocketAddr::new(from.ip(), hello.port)));
            }
        }
        let others: Vec<_> = others.into_iter().flatten().collect();
        let own = listener.local_addr()?;
        let addresses: Vec<_> = [own].into_iter().chain(others.iter().map(|other| other.1)).collect();
        others.iter().try_for_each(|(stream, _)| write_message(stream, &addresses))?;
        Ok((listener, addresses))
    }

    /// On other ranks: connects to the first rank, with retries, and receives the addresses of all ranks.
    fn dial_first_rank(&self, deadline: Instant) -> Result<(TcpListener, Vec<SocketAddr>)> {
        let host = loop {
            match TcpStream::connect((self.host.as_str(), self.port)) {
                Ok(stream) => break stream,
                Err(_) if Instant::now() < deadline => sleep(RETRY_INTERVAL),
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!("cannot reach the first rank at {}:{}", self.host, self.port)
                    });
                }
            }
        };
        let listener = TcpListener::bind((host.local_addr()?.ip(), 0))?;
        write_message(&host, &self.hello(listener.local_addr()?.port()))?;
        host.set_read_timeout(Some(TIMEOUT))?;
        let addresses: Vec<SocketAddr> =
            read_message(&host).context("the first rank did not send the addresses")?;
        ensure!(addresses.len() == self.ranks as usize, "the first rank expects {} ranks", addresses.len());
        Ok((listener, addresses))
    }

    fn accept_rank(&self, rank: u32, listener: &TcpListener, deadline: Instant) -> Result<TcpStream> {
        loop {
            let (stream, _) =
                accept(listener, deadline).with_context(|| format!("rank {rank} did not connect"))?;
            if self.read_hello(&stream).is_some_and(|hello| hello.rank == rank) {
                return Ok(stream);
            }
        }
    }

    fn hello(&self, port: u16) -> RankHello {
        RankHello { name: self.name.clone(), rank: self.rank, ranks: self.ranks, port }
    }

    /// The hello of another rank of this training; none from anyone else.
    fn read_hello(&self, stream: &TcpStream) -> Option<RankHello> {
        stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT)).ok()?;
        let hello: RankHello = read_message(stream).ok()?;
        (hello.name == self.name && hello.ranks == self.ranks).then_some(hello)
    }
}

/// Accepts a connection before the deadline.
fn accept(listener: &TcpListener, deadline: Instant) -> Result<(TcpStream, SocketAddr)> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, from)) => {
                stream.set_nonblocking(false)?;
                return Ok((stream, SocketAddr::new(unmapped(from.ip()), from.port())));
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
            Err(_) if Instant::now() >= deadline => bail!("no connection within {} s", TIMEOUT.as_secs()),
            Err(_) => sleep(RETRY_INTERVAL),
        }
    }
}

/// A dual-stack listener reports IPv4 addresses as mapped IPv6 addresses.
fn unmapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn write_message<T: Serialize>(mut stream: &TcpStream, message: &T) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(stream.write_all(&line)?)
}

/// Reads byte by byte: what follows the line belongs to the next user of the stream.
#[expect(
    clippy::unbuffered_bytes,
    reason = "a buffer would consume what follows; messages are short and few"
)]
fn read_message<T: DeserializeOwned>(stream: &TcpStream) -> Result<T> {
    let bytes = stream.take(MAX_LINE_BYTES).bytes();
    let line: Vec<u8> = bytes.take_while(|byte| !matches!(byte, Ok(b'\n'))).collect::<io::Result<_>>()?;
    Ok(serde_json::from_slice(&line)?)
}

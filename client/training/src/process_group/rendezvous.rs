//! How ranks find each other: all but the first dial the first, say where they listen, and hear where the
//! next one does.
//!
//! The first rank may start last, so the others dial again until it is there. Whoever is none of the ranks of
//! this very training is turned away. Nothing is encrypted: a cluster's network is trusted, as torchrun
//! trusts it.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ring::Ring;

/// Other ranks may still be starting, or wait for a slow disk.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Between two tries to reach the first rank.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// How long a stranger may keep silent.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest line that makes sense here: some bytes for each rank.
const MAX_LINE_BYTES: u64 = 1 << 18;

/// Who meets where.
#[derive(Clone, Debug)]
pub(crate) struct RankRendezvous {
    /// The same for all ranks of a training, another for every other training.
    pub(crate) name: String,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    /// Where the first rank is.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// What a rank says of itself.
#[derive(Debug, Serialize, Deserialize)]
struct RankHello {
    name: String,
    rank: u32,
    ranks: u32,
    /// Where it listens for the one before it.
    port: u16,
}

impl RankRendezvous {
    /// Waits for all ranks, and closes the ring.
    pub(crate) fn form_ring(&self) -> Result<Ring> {
        let deadline = Instant::now() + TIMEOUT;
        let (listener, addresses) = if self.rank == 0 { self.host(deadline)? } else { self.visit(deadline)? };
        let next = addresses.get((self.rank as usize + 1) % addresses.len());
        let next = TcpStream::connect(next.context("the first rank knows of no ranks")?)
            .with_context(|| format!("rank {} cannot be reached", (self.rank + 1) % self.ranks))?;
        say(&next, &self.greeting(0))?;
        let previous = self.wait_for((self.rank + self.ranks - 1) % self.ranks, &listener, deadline)?;
        Ring::new(self.rank as usize, self.ranks as usize, next, previous)
    }

    /// The first rank gathers everybody's address, and tells it to all.
    fn host(&self, deadline: Instant) -> Result<(TcpListener, Vec<SocketAddr>)> {
        let place = (self.host.as_str(), self.port);
        let door = TcpListener::bind(place)
            .with_context(|| format!("MASTER_PORT {} of {} cannot be used", self.port, self.host))?;
        let listener = TcpListener::bind((door.local_addr()?.ip(), 0))?;
        let mut guests: Vec<Option<(TcpStream, SocketAddr)>> = (1..self.ranks).map(|_| None).collect();
        while guests.iter().any(Option::is_none) {
            let missing = || guests.iter().position(Option::is_none).map_or(0, |index| index + 1);
            let (stream, from) =
                accept(&door, deadline).with_context(|| format!("rank {} does not come", missing()))?;
            let Some(greeting) = self.heard(&stream) else { continue };
            if let Some(guest) = guests.get_mut((greeting.rank as usize).wrapping_sub(1)) {
                *guest = Some((stream, SocketAddr::new(from.ip(), greeting.port)));
            }
        }
        let guests: Vec<_> = guests.into_iter().flatten().collect();
        let own = listener.local_addr()?;
        let addresses: Vec<_> = [own].into_iter().chain(guests.iter().map(|guest| guest.1)).collect();
        guests.iter().try_for_each(|(stream, _)| say(stream, &addresses))?;
        Ok((listener, addresses))
    }

    /// Dials the first rank until it answers.
    fn visit(&self, deadline: Instant) -> Result<(TcpListener, Vec<SocketAddr>)> {
        let host = loop {
            match TcpStream::connect((self.host.as_str(), self.port)) {
                Ok(stream) => break stream,
                Err(_) if Instant::now() < deadline => sleep(RETRY_INTERVAL),
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!("the first rank does not answer at {}:{}", self.host, self.port)
                    });
                }
            }
        };
        let listener = TcpListener::bind((host.local_addr()?.ip(), 0))?;
        say(&host, &self.greeting(listener.local_addr()?.port()))?;
        host.set_read_timeout(Some(TIMEOUT))?;
        let addresses: Vec<SocketAddr> = hear(&host).context("the first rank does not say who is there")?;
        ensure!(addresses.len() == self.ranks as usize, "the first rank waits for {} ranks", addresses.len());
        Ok((listener, addresses))
    }

    fn wait_for(&self, rank: u32, listener: &TcpListener, deadline: Instant) -> Result<TcpStream> {
        loop {
            let (stream, _) =
                accept(listener, deadline).with_context(|| format!("rank {rank} does not come"))?;
            if self.heard(&stream).is_some_and(|greeting| greeting.rank == rank) {
                return Ok(stream);
            }
        }
    }

    fn greeting(&self, port: u16) -> RankHello {
        RankHello { name: self.name.clone(), rank: self.rank, ranks: self.ranks, port }
    }

    /// The greeting of another rank of this training; nothing of anybody else.
    fn heard(&self, stream: &TcpStream) -> Option<RankHello> {
        stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT)).ok()?;
        let greeting: RankHello = hear(stream).ok()?;
        (greeting.name == self.name && greeting.ranks == self.ranks).then_some(greeting)
    }
}

/// Waits no longer than until the deadline.
fn accept(listener: &TcpListener, deadline: Instant) -> Result<(TcpStream, SocketAddr)> {
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((stream, from)) => {
                stream.set_nonblocking(false)?;
                return Ok((stream, SocketAddr::new(plain(from.ip()), from.port())));
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
            Err(_) if Instant::now() >= deadline => bail!("nobody came within {} s", TIMEOUT.as_secs()),
            Err(_) => sleep(RETRY_INTERVAL),
        }
    }
}

/// A listener for both kinds of address shows the older kind in disguise.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn say<T: Serialize>(mut stream: &TcpStream, words: &T) -> Result<()> {
    let mut line = serde_json::to_vec(words)?;
    line.push(b'\n');
    Ok(stream.write_all(&line)?)
}

/// Byte by byte: what follows the line belongs to whoever uses the stream next.
#[expect(clippy::unbuffered_bytes, reason = "a buffer would keep what follows; the lines are short and few")]
fn hear<T: DeserializeOwned>(stream: &TcpStream) -> Result<T> {
    let bytes = stream.take(MAX_LINE_BYTES).bytes();
    let line: Vec<u8> = bytes.take_while(|byte| !matches!(byte, Ok(b'\n'))).collect::<io::Result<_>>()?;
    Ok(serde_json::from_slice(&line)?)
}

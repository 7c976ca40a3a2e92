//! Frames of peers, recorded between them and played again, for tests of the versions that a head serves.
//!
//! A recorder stands between a peer and a head of the same cluster: it holds the head's identity, so both
//! trust it, and writes down each frame in the clear. A [`RawPeer`] sends and receives frames that nothing
//! checks.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_wire::Fingerprint;
use cohabit_wire::codec::MAX_FRAME;
use futures::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::bytes::Bytes;

use crate::frames::{Frames, frames};
use crate::{HeadIdentity, tls};

/// A connection to a head on which anything may be said.
pub struct RawPeer(Frames<TlsStream<TcpStream>>);

impl RawPeer {
    /// Connects to the head of this cluster.
    ///
    /// # Errors
    /// When nothing answers there in TLS.
    pub async fn connect(address: &str, cluster: Fingerprint) -> io::Result<RawPeer> {
        let config = tls::client_config(cluster).map_err(io::Error::other)?;
        let stream = TcpStream::connect(address).await?;
        let stream = TlsConnector::from(Arc::new(config)).connect(tls::head_name(), stream).await?;
        Ok(RawPeer(frames(stream, MAX_FRAME)))
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn send(&mut self, frame: Bytes) -> io::Result<()> {
        self.0.send(frame).await
    }

    /// The next frame; none when the head hung up.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        self.0.next().await.map(|frame| frame.map(Into::into)).transpose()
    }
}

/// Passes connections on to the head at `upstream`, and writes the frames of each to a file of its own in
/// `folder`, as it goes: a line for each, `peer HEX` or `head HEX`.
///
/// # Errors
/// When the identity cannot be used, or nobody can be listened to.
pub async fn record(
    socket: TcpListener,
    identity: &HeadIdentity,
    upstream: String,
    folder: &Path,
) -> io::Result<()> {
    let config = tls::server_config(identity.chain(), identity.key()).map_err(io::Error::other)?;
    let (acceptor, cluster) = (TlsAcceptor::from(Arc::new(config)), identity.fingerprint());
    for number in 0.. {
        let (stream, _) = socket.accept().await?;
        let stream = acceptor.accept(stream).await?;
        let file = folder.join(format!("{number:02}.txt"));
        let upstream = RawPeer::connect(&upstream, cluster).await?;
        tokio::spawn(pass_on(frames(stream, MAX_FRAME), upstream, file));
    }
    Ok(())
}

async fn pass_on(
    mut peer: Frames<tokio_rustls::server::TlsStream<TcpStream>>,
    mut head: RawPeer,
    file: PathBuf,
) -> io::Result<()> {
    let mut lines = String::new();
    loop {
        let (from, frame) = tokio::select! {
            frame = peer.next() => ("peer", frame.transpose()?.map(Bytes::from)),
            frame = head.receive() => ("head", frame?),
        };
        let Some(frame) = frame else { return Ok(()) };
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        _ = writeln!(lines, "{from} {hex}");
        std::fs::write(&file, &lines)?;
        match from {
            "peer" => head.send(frame).await?,
            _ => peer.send(frame).await?,
        }
    }
}

//! The head's side of a handshake: TLS, then the hello, then a connection slot; or a refusal that says what
//! to do.
//!
//! One time limit covers all of it. Before the token is found good, the head reads no more than the secret,
//! which stands first in the hello. A rejected peer is logged with its address and the reason, never with
//! what it sent.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cohabit_types::Role;
use cohabit_wire::codec::{LENGTH_PREFIX, MAX_FRAME};
use cohabit_wire::hello::{
    ConnectionPurpose, HelloAnswer, HelloError, LONGEST_CLIENT_HELLO, LONGEST_HELLO, LONGEST_HELLO_PREFIX,
    decode_purpose, decode_secret, encode_answer,
};
use cohabit_wire::{Fingerprint, HelloRefusalCode, ProtocolVersion};
use futures::SinkExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connection_slots::{ConnectionLimitError, ConnectionLimiter, ConnectionSlot};
use crate::frames::{Frames, frames};
use crate::peer::{ClientPeer, Incoming, PeerContext, WorkerPeer};
use crate::rate_limited_log::{RateLimitedLog, RejectionClass};
use crate::token_store::Grant;
use crate::{TokenStore, VerifyError, clock, socket};

/// How long a refused peer has to read its refusal before the connection is dropped.
const LINGER: Duration = Duration::from_secs(1);

/// Greets connections, and accepts those whose token is good.
pub(crate) struct HandshakeService {
    pub(crate) tls: TlsAcceptor,
    pub(crate) cluster: Fingerprint,
    pub(crate) tokens: TokenStore,
    pub(crate) time_limit: Duration,
    pub(crate) message_limit: Duration,
    pub(crate) connection_limiter: ConnectionLimiter,
    pub(crate) rejections: RateLimitedLog,
}

/// Why a connection was rejected.
#[derive(Debug, thiserror::Error)]
enum Rejection {
    #[error("it sent no hello in time")]
    Slow,
    #[error("it did not begin with a valid TLS handshake ({0})")]
    NotTls(io::Error),
    #[error("it disconnected before it sent a hello")]
    Disconnected,
    #[error("its hello could not be read ({0})")]
    Unreadable(io::Error),
    #[error("{0}")]
    NotUnderstood(#[from] HelloError),
    #[error("{message}")]
    Refused { code: HelloRefusalCode, message: String },
}

/// A connection that was rejected, and the stream over which to say why, if there is one.
struct RejectedConnection {
    why: Rejection,
    stream: Option<TlsStream<TcpStream>>,
    /// The version of its hello, in which it is answered.
    version: ProtocolVersion,
}

/// A peer whose hello was understood and whose token is good.
struct Authenticated {
    purpose: ConnectionPurpose,
    grant: Grant,
    slot: ConnectionSlot,
}

impl HandshakeService {
    /// Greets one connection; none if it was rejected.
    pub(crate) async fn run_handshake(
        self: Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Option<Incoming> {
        let greeted = timeout(self.time_limit, self.try_handshake(stream, address)).await;
        let RejectedConnection { why, stream, version } = match greeted.unwrap_or(Err(Rejection::Slow.into()))
        {
            Ok(peer) => return Some(peer),
            Err(turned_away) => turned_away,
        };
        self.rejections.log_rejection(why.weight(), address, &why);
        if let (Some(stream), Some(answer)) = (stream, why.answer()) {
            send_refusal_in_time(frames(stream, MAX_FRAME), version, &answer).await;
        }
        None
    }

    async fn try_handshake(
        &self,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Result<Incoming, RejectedConnection> {
        socket::set_up(&stream).map_err(Rejection::Unreadable)?;
        let mut stream = self.tls.accept(stream).await.map_err(Rejection::NotTls)?;
        let mut version = ProtocolVersion::CURRENT;
        let Authenticated { purpose, grant, slot } = match self.authenticate(&mut stream, &mut version).await
        {
            Ok(authenticated) => authenticated,
            Err(why) => return Err(RejectedConnection { why, stream: Some(stream), version }),
        };
        let admission = PeerContext {
            address,
            version,
            cluster: self.cluster,
            grant,
            tokens: self.tokens.clone(),
            slot,
            message_limit: self.message_limit,
        };
        let frames = frames(stream, MAX_FRAME);
        Ok(match purpose {
            ConnectionPurpose::Client => Incoming::Client(ClientPeer { frames, admission }),
            ConnectionPurpose::Worker(hello) => Incoming::Worker(WorkerPeer { frames, admission, hello }),
        })
    }

    /// Reads the hello and checks its token. Notes its version as soon as that is known, so that a refusal is
    /// sent in it.
    async fn authenticate(
        &self,
        stream: &mut TlsStream<TcpStream>,
        version: &mut ProtocolVersion,
    ) -> Result<Authenticated, Rejection> {
        let length = length(stream).await?;
        let mut frame = vec![0; length.min(LONGEST_HELLO_PREFIX)];
        read(stream, &mut frame).await?;
        let (said, secret, begin) = decode_secret(&frame)?;
        *version = said;
        let grant = self.tokens.admit(secret, clock::now()).map_err(|error| Rejection::Refused {
            code: match error {
                VerifyError::Unknown => HelloRefusalCode::UnknownToken,
                VerifyError::Expired => HelloRefusalCode::ExpiredToken,
            },
            message: error.to_string(),
        })?;
        let introduced = frame.len();
        frame.resize(length, 0);
        read(stream, &mut frame[introduced..]).await?;
        let purpose = decode_purpose(said, &frame[begin..])?;
        check_purpose(&purpose, &grant, length)?;
        let slot = self.connection_limiter.take(&grant.by.user)?;
        Ok(Authenticated { purpose, grant, slot })
    }
}

/// The length of the first frame, as its prefix says.
async fn length(stream: &mut TlsStream<TcpStream>) -> Result<usize, Rejection> {
    let mut length = [0; LENGTH_PREFIX];
    read(stream, &mut length).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST_HELLO {
        let reason = format!("it announces {length} bytes, and at most {LONGEST_HELLO} are allowed");
        return Err(Rejection::Unreadable(io::Error::new(io::ErrorKind::InvalidData, reason)));
    }
    Ok(length)
}

async fn read(stream: &mut TlsStream<TcpStream>, bytes: &mut [u8]) -> Result<(), Rejection> {
    match stream.read_exact(bytes).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Rejection::Disconnected),
        Err(error) => Err(Rejection::Unreadable(error)),
    }
}

/// A worker needs a worker's or an admin's token, a client that of a user, a viewer or an admin.
fn check_purpose(purpose: &ConnectionPurpose, grant: &Grant, length: usize) -> Result<(), Rejection> {
    let wrong_role = |needed: &str| Rejection::Refused {
        code: HelloRefusalCode::WrongRole,
        message: format!(
            "the token '{}' has the role {}: use a token for {needed}",
            grant.by.user, grant.by.role
        ),
    };
    if let (ConnectionPurpose::Worker(_), Some(application)) = (purpose, grant.application) {
        return Err(Rejection::Refused {
            code: HelloRefusalCode::WrongRole,
            message: format!(
                "the token of application {application} is for its coordinator: no worker can use it"
            ),
        });
    }
    match (purpose, grant.by.role) {
        (ConnectionPurpose::Client, Role::Worker) => Err(wrong_role("a user or an admin")),
        (ConnectionPurpose::Worker(_), Role::User | Role::Viewer) => Err(wrong_role("a worker")),
        (ConnectionPurpose::Client, Role::User | Role::Viewer | Role::Admin)
            if length > LONGEST_CLIENT_HELLO =>
        {
            Err(Rejection::Refused {
                code: HelloRefusalCode::Undecodable,
                message: format!(
                    "the hello of a client has {length} bytes, and at most {LONGEST_CLIENT_HELLO} are allowed"
                ),
            })
        }
        (ConnectionPurpose::Client, Role::User | Role::Viewer | Role::Admin)
        | (ConnectionPurpose::Worker(_), Role::Worker | Role::Admin) => Ok(()),
    }
}

/// Sends a refusal, and gives the peer a moment to read it.
pub(crate) async fn send_refusal_in_time(
    frames: Frames<TlsStream<TcpStream>>,
    version: ProtocolVersion,
    answer: &HelloAnswer,
) {
    let _in_time = timeout(LINGER, send_refusal(frames, version, answer)).await;
}

/// Sends the refusal and waits until the peer hangs up: closing over unread bytes would discard the refusal.
async fn send_refusal(
    mut frames: Frames<TlsStream<TcpStream>>,
    version: ProtocolVersion,
    answer: &HelloAnswer,
) {
    let Ok(answer) = encode_answer(version, answer) else { return };
    if frames.send(answer).await.is_err() {
        return;
    }
    let mut stream = frames.into_inner();
    if stream.shutdown().await.is_ok() {
        let mut ignored = [0; 4_096];
        while stream.read(&mut ignored).await.is_ok_and(|length| length > 0) {}
    }
}

impl Rejection {
    fn weight(&self) -> RejectionClass {
        match self {
            Rejection::Refused { .. } | Rejection::NotUnderstood(HelloError::OtherVersion { .. }) => {
                RejectionClass::Refusal
            }
            Rejection::Slow
            | Rejection::NotTls(_)
            | Rejection::Disconnected
            | Rejection::Unreadable(_)
            | Rejection::NotUnderstood(HelloError::NotCohabit | HelloError::Undecodable(_)) => {
                RejectionClass::Noise
            }
        }
    }

    /// The answer to the peer; none if it would not understand it.
    fn answer(&self) -> Option<HelloAnswer> {
        match self {
            Rejection::Refused { code, message } => {
                Some(HelloAnswer::Refused { code: *code, message: message.clone() })
            }
            // Another version only reads the outer layout of the answer: it says which version this is.
            Rejection::NotUnderstood(
                error @ (HelloError::OtherVersion { .. } | HelloError::Undecodable(_)),
            ) => {
                Some(HelloAnswer::Refused { code: HelloRefusalCode::Undecodable, message: error.to_string() })
            }
            Rejection::NotUnderstood(HelloError::NotCohabit)
            | Rejection::Slow
            | Rejection::NotTls(_)
            | Rejection::Disconnected
            | Rejection::Unreadable(_) => None,
        }
    }
}

impl From<Rejection> for RejectedConnection {
    fn from(why: Rejection) -> RejectedConnection {
        RejectedConnection { why, stream: None, version: ProtocolVersion::CURRENT }
    }
}

impl From<ConnectionLimitError> for Rejection {
    fn from(full: ConnectionLimitError) -> Rejection {
        Rejection::Refused { code: HelloRefusalCode::Busy, message: full.to_string() }
    }
}

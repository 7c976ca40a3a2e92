//! How the head greets who dials: TLS, then the hello, then a place; or a refusal that says what to do.
//!
//! All of it is under one time limit, and nobody is believed before the token was found good. Whoever is
//! turned away is logged with address and reason, never with what they said.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cohabit_proto::Role;
use futures::{SinkExt, StreamExt};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::hello::{
    Hello, HelloAnswer, LONGEST_CLIENT_HELLO, LONGEST_HELLO, Purpose, RefusedCode, UnsealError, seal, unseal,
};
use crate::listener::Incoming;
use crate::peer::{Admission, ClientPeer, WorkerPeer};
use crate::token_store::Grant;
use crate::wire::{Frames, MAX_FRAME, frames};
use crate::{Fingerprint, TokenStore, VerifyError, clock, socket};

/// How long a refused peer has to take its refusal before the connection is dropped.
const LINGER: Duration = Duration::from_secs(1);

/// Who lets people in.
pub(crate) struct Doorkeeper {
    pub(crate) tls: TlsAcceptor,
    pub(crate) cluster: Fingerprint,
    pub(crate) tokens: TokenStore,
    pub(crate) time_limit: Duration,
    pub(crate) places: Arc<Semaphore>,
}

/// Why somebody was not let in.
#[derive(Debug, thiserror::Error)]
enum Rejection {
    #[error("it took too long to say hello")]
    Slow,
    #[error("it did not begin with TLS as links use it ({0})")]
    NotTls(io::Error),
    #[error("it left before it said hello")]
    Left,
    #[error("its hello could not be read ({0})")]
    Unreadable(io::Error),
    #[error("{0}")]
    NotUnderstood(#[from] UnsealError),
    #[error("{message}")]
    Refused { code: RefusedCode, message: String },
}

/// Somebody who was not let in, and the connection over which to say why, if there is one.
struct TurnedAway {
    why: Rejection,
    frames: Option<Frames<TlsStream<TcpStream>>>,
}

impl Doorkeeper {
    /// Greets one connection; none if it was turned away.
    pub(crate) async fn greet(self: Arc<Self>, stream: TcpStream, address: SocketAddr) -> Option<Incoming> {
        let greeted = timeout(self.time_limit, self.try_greet(stream, address)).await;
        let TurnedAway { why, frames } = match greeted.unwrap_or(Err(Rejection::Slow.into())) {
            Ok(peer) => return Some(peer),
            Err(turned_away) => turned_away,
        };
        why.log(address);
        if let (Some(frames), Some(answer)) = (frames, why.answer()) {
            let _in_time = timeout(LINGER, tell(frames, &answer)).await;
        }
        None
    }

    async fn try_greet(&self, stream: TcpStream, address: SocketAddr) -> Result<Incoming, TurnedAway> {
        socket::set_up(&stream).map_err(Rejection::Unreadable)?;
        let stream = self.tls.accept(stream).await.map_err(Rejection::NotTls)?;
        let mut frames = frames(stream, LONGEST_HELLO);
        let frame = frames.next().await.ok_or(Rejection::Left)?.map_err(Rejection::Unreadable)?;
        let (purpose, grant, place) = match self.judge(&frame) {
            Ok(judged) => judged,
            Err(why) => return Err(TurnedAway { why, frames: Some(frames) }),
        };
        frames.codec_mut().set_max_frame_length(MAX_FRAME);
        let admission =
            Admission { address, cluster: self.cluster, grant, tokens: self.tokens.clone(), place };
        Ok(match purpose {
            Purpose::Client => Incoming::Client(ClientPeer { frames, admission }),
            Purpose::Worker(hello) => Incoming::Worker(WorkerPeer { frames, admission, hello }),
        })
    }

    /// Who it is, what for, and whether there is a place.
    fn judge(&self, frame: &[u8]) -> Result<(Purpose, Grant, OwnedSemaphorePermit), Rejection> {
        let Hello { secret, purpose } = unseal(frame)?;
        let grant = self.tokens.admit(secret, clock::now()).map_err(|error| Rejection::Refused {
            code: match error {
                VerifyError::Unknown => RefusedCode::UnknownToken,
                VerifyError::Expired => RefusedCode::ExpiredToken,
            },
            message: error.to_string(),
        })?;
        check_purpose(&purpose, &grant, frame.len())?;
        let place = self.places.clone().try_acquire_owned().map_err(|_none_left| Rejection::Refused {
            code: RefusedCode::Busy,
            message: "as many are connected as the head allows: try again later".to_owned(),
        })?;
        Ok((purpose, grant, place))
    }
}

/// Workers join with a worker's or an admin's token, clients come with a user's or an admin's.
fn check_purpose(purpose: &Purpose, grant: &Grant, length: usize) -> Result<(), Rejection> {
    let wrong_role = |needed: &str| Rejection::Refused {
        code: RefusedCode::WrongRole,
        message: format!("the token '{}' is for a {}: use one for {needed}", grant.by.user, grant.by.role),
    };
    match (purpose, grant.by.role) {
        (Purpose::Client, Role::Worker) => Err(wrong_role("a user or an admin")),
        (Purpose::Worker(_), Role::User) => Err(wrong_role("a worker")),
        (Purpose::Client, Role::User | Role::Admin) if length > LONGEST_CLIENT_HELLO => {
            Err(Rejection::Refused {
                code: RefusedCode::Garbled,
                message: format!("a client's hello has at most {LONGEST_CLIENT_HELLO} bytes, not {length}"),
            })
        }
        (Purpose::Client, Role::User | Role::Admin) | (Purpose::Worker(_), Role::Worker | Role::Admin) => {
            Ok(())
        }
    }
}

/// Tells the peer, and waits until it has hung up: closing over unread bytes would destroy what was told.
async fn tell(mut frames: Frames<TlsStream<TcpStream>>, answer: &HelloAnswer) {
    let Ok(answer) = seal(answer) else { return };
    if frames.send(answer).await.is_ok() && frames.get_mut().shutdown().await.is_ok() {
        while let Some(Ok(_ignored)) = frames.next().await {}
    }
}

impl Rejection {
    fn log(&self, address: SocketAddr) {
        match self {
            Rejection::Refused { .. } | Rejection::NotUnderstood(UnsealError::OtherVersion { .. }) => {
                tracing::warn!(%address, reason = %self, "refused a connection");
            }
            Rejection::Slow
            | Rejection::NotTls(_)
            | Rejection::Left
            | Rejection::Unreadable(_)
            | Rejection::NotUnderstood(UnsealError::NotCohabit | UnsealError::Garbled(_)) => {
                tracing::info!(%address, reason = %self, "turned a connection away");
            }
        }
    }

    /// What the peer is told; nothing if it would not understand.
    fn answer(&self) -> Option<HelloAnswer> {
        match self {
            Rejection::Refused { code, message } => {
                Some(HelloAnswer::Refused { code: *code, message: message.clone() })
            }
            // Another version only reads the outer layout of the answer: it says which version this is.
            Rejection::NotUnderstood(
                error @ (UnsealError::OtherVersion { .. } | UnsealError::Garbled(_)),
            ) => Some(HelloAnswer::Refused { code: RefusedCode::Garbled, message: error.to_string() }),
            Rejection::NotUnderstood(UnsealError::NotCohabit)
            | Rejection::Slow
            | Rejection::NotTls(_)
            | Rejection::Left
            | Rejection::Unreadable(_) => None,
        }
    }
}

impl From<Rejection> for TurnedAway {
    fn from(why: Rejection) -> TurnedAway {
        TurnedAway { why, frames: None }
    }
}

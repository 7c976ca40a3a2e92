//! The first frame each way: who speaks which version, who wants what, and whether that is granted.
//!
//! The outer layout is for ever, whatever the version, so that two versions can at least tell each other why
//! they part: magic (8 bytes), protocol version (4 bytes, big end first), length of the build (1 byte), the
//! build as text; then the body, which only the same version reads.

use cohabit_types::{Inventory, Principal, WorkerKey};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_util::bytes::{Bytes, BytesMut};

use crate::token::Secret;
use crate::wire::{self, WireError};
use crate::{Fingerprint, LinkErrorKind};

/// Raised with every change of what travels on links, the proto messages included.
pub const PROTOCOL_VERSION: u32 = 4;
/// The build that says hello, for people.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");
/// The longest first frame of a worker, whose inventory lists all that it holds.
pub(crate) const LONGEST_HELLO: usize = 1 << 20;
/// The longest beginning of a first frame: all up to the secret, the build as long as it can be.
pub(crate) const LONGEST_HELLO_PREFIX: usize = MAGIC.len() + 5 + u8::MAX as usize + Secret::LENGTH;
/// The longest first frame of a client.
pub(crate) const LONGEST_CLIENT_HELLO: usize = 64 << 10;

/// What every first frame begins with.
pub(crate) const MAGIC: [u8; 8] = *b"COHABIT\n";

/// What the one who dialled says first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) secret: Secret,
    pub(crate) purpose: ConnectionPurpose,
}

/// What the one who dialled wants to be.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ConnectionPurpose {
    /// One who asks.
    Client,
    /// One who runs ranks.
    Worker(Box<WorkerHello>),
}

/// How a worker introduces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerHello {
    /// Which link of which node this is.
    pub key: WorkerKey,
    /// What the node has, and every rank that it holds.
    pub inventory: Inventory,
}

/// What the head says first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HelloAnswer {
    /// Go on.
    Accepted(HelloAccepted),
    /// This connection is over.
    Refused { code: HelloRefusalCode, message: String },
}

/// What the head says to those it lets in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloAccepted {
    /// Which cluster it is.
    pub cluster: Fingerprint,
    /// Who the token says you are.
    pub by: Principal,
    /// The head's build.
    pub build: String,
}

/// Why a head refuses a connection, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HelloRefusalCode {
    /// The token never was good, or was revoked.
    UnknownToken,
    /// The token was good until it expired.
    ExpiredToken,
    /// The token does not allow this purpose.
    WrongRole,
    /// Too many are connected.
    Busy,
    /// The hello made no sense.
    Garbled,
}

impl HelloRefusalCode {
    pub(crate) const fn kind(self) -> LinkErrorKind {
        match self {
            HelloRefusalCode::UnknownToken | HelloRefusalCode::ExpiredToken | HelloRefusalCode::WrongRole => {
                LinkErrorKind::NotAllowed
            }
            HelloRefusalCode::Busy => LinkErrorKind::Unreachable,
            HelloRefusalCode::Garbled => LinkErrorKind::BadConfiguration,
        }
    }
}

/// Why a first frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelloError {
    #[error("it did not begin with a Cohabit hello")]
    NotCohabit,
    #[error(
        "it runs cohabit {build} and speaks protocol {theirs}, \
         this is cohabit {BUILD} and speaks protocol {PROTOCOL_VERSION}: upgrade {older}",
        older = older(*theirs, "it", "this one")
    )]
    OtherVersion { theirs: u32, build: String },
    #[error(transparent)]
    Garbled(#[from] WireError),
}

/// The first frame with this body.
pub(crate) fn encode_hello<Body: Serialize>(body: &Body) -> Result<Bytes, WireError> {
    Ok(envelope(PROTOCOL_VERSION, BUILD, &wire::encode(body)?))
}

/// The body of a first frame of this version.
pub(crate) fn decode_hello<Body: DeserializeOwned>(frame: &[u8]) -> Result<Body, HelloError> {
    let (theirs, build, body) = open(frame).ok_or(HelloError::NotCohabit)?;
    if theirs != PROTOCOL_VERSION {
        return Err(HelloError::OtherVersion { theirs, build });
    }
    Ok(wire::decode(body)?)
}

/// The secret at the beginning of a [`Hello`] of this version, of which not all need be there, and where its
/// purpose begins.
pub(crate) fn decode_secret(frame: &[u8]) -> Result<(Secret, usize), HelloError> {
    let (theirs, build, body) = open(frame).ok_or(HelloError::NotCohabit)?;
    if theirs != PROTOCOL_VERSION {
        return Err(HelloError::OtherVersion { theirs, build });
    }
    let (secret, purpose) = body.split_at_checked(Secret::LENGTH).unwrap_or((body, &[]));
    Ok((wire::decode(secret)?, frame.len() - purpose.len()))
}

/// The purpose, which follows the secret in a [`Hello`].
pub(crate) fn purpose(bytes: &[u8]) -> Result<ConnectionPurpose, HelloError> {
    Ok(wire::decode(bytes)?)
}

/// Which of two sides has to be upgraded, seen from the side of this version.
pub(crate) const fn older<'a>(theirs: u32, them: &'a str, us: &'a str) -> &'a str {
    if theirs < PROTOCOL_VERSION { them } else { us }
}

fn envelope(version: u32, build: &str, body: &[u8]) -> Bytes {
    let build = &build.as_bytes()[..build.len().min(usize::from(u8::MAX))];
    let mut frame = BytesMut::with_capacity(MAGIC.len() + 5 + build.len() + body.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&version.to_be_bytes());
    frame.extend_from_slice(&[build.len() as u8]);
    frame.extend_from_slice(build);
    frame.extend_from_slice(body);
    frame.freeze()
}

/// Version, build and body; the build cleaned of what would disturb a terminal or a log.
fn open(frame: &[u8]) -> Option<(u32, String, &[u8])> {
    let rest = frame.strip_prefix(&MAGIC)?;
    let (version, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first()?;
    let (build, body) = rest.split_at_checked(usize::from(*length))?;
    let build = String::from_utf8_lossy(build).chars().filter(|c| !c.is_control()).collect();
    Some((u32::from_be_bytes(*version), build, body))
}

#[cfg(test)]
pub(crate) use tests::of_another_version;

#[cfg(test)]
mod tests {
    use super::*;

    /// A first frame as a later or an earlier version would send it.
    pub(crate) fn of_another_version(version: u32, build: &str) -> Bytes {
        envelope(version, build, b"a body that nobody here can read")
    }

    #[test]
    fn the_outer_layout_is_for_ever() {
        let frame = envelope(0x0102_0304, "9.9", b"body");
        assert_eq!(&frame[..], b"COHABIT\n\x01\x02\x03\x04\x039.9body");
    }

    #[test]
    fn another_version_is_told_by_its_number_and_build_and_its_body_is_left_alone() {
        let error =
            decode_hello::<HelloAnswer>(&of_another_version(7, "3.1\x1b[2J")).unwrap_err().to_string();
        assert!(error.contains("cohabit 3.1[2J and speaks protocol 7"), "{error}");
        let ours = format!("speaks protocol {PROTOCOL_VERSION}: upgrade this one");
        assert!(error.contains(&ours), "{error}");
    }

    #[test]
    fn what_is_cut_short_or_something_else_is_no_hello() {
        let whole = of_another_version(7, "3.1");
        for end in 0..MAGIC.len() + 5 + 3 {
            assert!(matches!(decode_hello::<Hello>(&whole[..end]), Err(HelloError::NotCohabit)), "{end}");
        }
        let get = b"GET / HTTP/1.1\r\nHost: head\r\n\r\n";
        assert!(matches!(decode_hello::<Hello>(get), Err(HelloError::NotCohabit)));
    }

    #[test]
    fn a_hello_does_not_show_its_secret() {
        let hello = Hello { secret: Secret::draw().unwrap(), purpose: ConnectionPurpose::Client };
        assert_eq!(format!("{hello:?}"), "Hello { secret: secret, purpose: Client }");
    }
}

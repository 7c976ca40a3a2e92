//! The first frame each way: the version of the protocol, the purpose of the connection, and the head's
//! answer.
//!
//! The outer layout never changes, whatever the version, so that two versions can at least tell each other
//! why they part: magic (8 bytes), protocol version (4 bytes, big end first), length of the build (1 byte),
//! the build as text; then the body, which belongs to the version. A head answers in the version of the
//! peer's hello where it serves that version, and in its own where it does not.

use cohabit_types::{Inventory, Principal, WorkerKey};
use serde::{Deserialize, Serialize};
use tokio_util::bytes::{Bytes, BytesMut};

use crate::codec::{self, CodecError};
use crate::{BUILD, Fingerprint, PROTOCOL_VERSION, ProtocolVersion, Secret, v4};

/// The longest first frame of a worker, whose inventory lists all that it holds.
pub const LONGEST_HELLO: usize = 1 << 20;
/// The longest beginning of a first frame: all up to the secret, with the longest build.
pub const LONGEST_HELLO_PREFIX: usize = MAGIC.len() + 5 + u8::MAX as usize + Secret::LENGTH;
/// The longest first frame of a client.
pub const LONGEST_CLIENT_HELLO: usize = 64 << 10;

/// What every first frame begins with.
pub const MAGIC: [u8; 8] = *b"COHABIT\n";

/// The body of the first frame of a client or worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The secret of the token. It stands first, so that a head can check it before it reads more.
    pub secret: Secret,
    /// What the connection is for.
    pub purpose: ConnectionPurpose,
}

/// What a connection is for.
#[derive(Debug, Serialize, Deserialize)]
pub enum ConnectionPurpose {
    /// A client's calls.
    Client,
    /// A worker's reports, and the orders for it.
    Worker(Box<WorkerHello>),
}

/// What a worker says of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerHello {
    /// The node, and which of its links this is.
    pub key: WorkerKey,
    /// A secret that the worker made for this node, so that no other can act as it; none from a worker of
    /// protocol 4.
    pub credential: Option<Secret>,
    /// What the node has, and each rank that it holds.
    pub inventory: Inventory,
}

/// The body of the first frame of a head.
#[derive(Debug, Serialize, Deserialize)]
pub enum HelloAnswer {
    /// The connection is accepted: calls may follow.
    Accepted(HelloAccepted),
    /// The connection is refused, and closed.
    Refused {
        /// Why, for programs.
        code: HelloRefusalCode,
        /// Why, and what to do, for people.
        message: String,
    },
}

/// What a head tells a peer that it accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloAccepted {
    /// The cluster that it belongs to.
    pub cluster: Fingerprint,
    /// The user and role of the peer's token.
    pub by: Principal,
    /// The head's build.
    pub build: String,
}

/// Why a head refuses a connection, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HelloRefusalCode {
    /// The token does not exist, or was revoked.
    UnknownToken,
    /// The token has expired.
    ExpiredToken,
    /// The token does not allow this purpose, or to act as this node.
    WrongRole,
    /// The head has too many connections.
    Busy,
    /// The hello cannot be decoded, or is of a protocol that the head does not serve.
    Undecodable,
    /// The head is in recovery mode: it serves nobody, and gives up no job. Since protocol 5.
    Recovering,
}

/// Why a first frame cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    /// It is of something else.
    #[error("it did not begin with a Cohabit hello")]
    NotCohabit,
    /// It is of a version that this build does not serve.
    #[error(
        "it runs cohabit {build} and speaks protocol {theirs}, but this is cohabit {BUILD}, which serves protocol \
         {oldest} and speaks protocol {PROTOCOL_VERSION}: upgrade {older}",
        oldest = ProtocolVersion::OLDEST.number(),
        older = older_side(*theirs, "it", "this one")
    )]
    OtherVersion {
        /// Its version.
        theirs: u32,
        /// Its build.
        build: String,
    },
    /// Its body cannot be decoded.
    #[error(transparent)]
    Undecodable(#[from] CodecError),
}

/// The first frame of a client or worker that speaks this version.
///
/// # Errors
/// When it would not fit a frame.
pub fn encode_hello(version: ProtocolVersion, hello: &Hello) -> Result<Bytes, CodecError> {
    let body = match version {
        ProtocolVersion::V4 => codec::encode(&v4::hello::Hello::from(hello))?,
        ProtocolVersion::V5 => codec::encode(hello)?,
    };
    Ok(envelope(version.number(), BUILD, &body))
}

/// The first frame of a head that speaks this version.
///
/// # Errors
/// When it would not fit a frame.
pub fn encode_answer(version: ProtocolVersion, answer: &HelloAnswer) -> Result<Bytes, CodecError> {
    let body = match version {
        ProtocolVersion::V4 => codec::encode(&v4::hello::HelloAnswer::from(answer))?,
        ProtocolVersion::V5 => codec::encode(answer)?,
    };
    Ok(envelope(version.number(), BUILD, &body))
}

/// A whole hello, and its version.
///
/// # Errors
/// When it is no hello, of a version that is not served, or cannot be decoded.
pub fn decode_hello(frame: &[u8]) -> Result<(ProtocolVersion, Hello), HelloError> {
    let (version, body) = open_served(frame)?;
    let (secret, purpose) = body.split_at_checked(Secret::LENGTH).unwrap_or((body, &[]));
    let hello = Hello { secret: codec::decode(secret)?, purpose: decode_purpose(version, purpose)? };
    Ok((version, hello))
}

/// The head's answer to a hello of this version.
///
/// # Errors
/// When it is no hello, of another version, or cannot be decoded.
pub fn decode_answer(frame: &[u8], version: ProtocolVersion) -> Result<HelloAnswer, HelloError> {
    let (theirs, build, body) = open(frame).ok_or(HelloError::NotCohabit)?;
    if theirs != version.number() {
        return Err(HelloError::OtherVersion { theirs, build });
    }
    Ok(match version {
        ProtocolVersion::V4 => codec::decode::<v4::hello::HelloAnswer>(body)?.into(),
        ProtocolVersion::V5 => codec::decode(body)?,
    })
}

/// The version of a [`Hello`] and the secret at its beginning, of which not all need be there, and where its
/// purpose begins.
///
/// # Errors
/// Those of [`decode_hello`].
pub fn decode_secret(frame: &[u8]) -> Result<(ProtocolVersion, Secret, usize), HelloError> {
    let (version, body) = open_served(frame)?;
    let (secret, purpose) = body.split_at_checked(Secret::LENGTH).unwrap_or((body, &[]));
    Ok((version, codec::decode(secret)?, frame.len() - purpose.len()))
}

/// The purpose, which follows the secret in a [`Hello`] of this version.
///
/// # Errors
/// When it cannot be decoded.
pub fn decode_purpose(version: ProtocolVersion, bytes: &[u8]) -> Result<ConnectionPurpose, HelloError> {
    Ok(match version {
        ProtocolVersion::V4 => codec::decode::<v4::hello::ConnectionPurpose>(bytes)?.into(),
        ProtocolVersion::V5 => codec::decode(bytes)?,
    })
}

/// Which of two sides has to be upgraded, seen from the side of this version.
#[must_use]
pub const fn older_side<'a>(theirs: u32, them: &'a str, us: &'a str) -> &'a str {
    if theirs < PROTOCOL_VERSION { them } else { us }
}

/// A first frame: the layout that never changes, and a body.
#[must_use]
pub fn envelope(version: u32, build: &str, body: &[u8]) -> Bytes {
    let build = &build.as_bytes()[..build.len().min(usize::from(u8::MAX))];
    let mut frame = BytesMut::with_capacity(MAGIC.len() + 5 + build.len() + body.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&version.to_be_bytes());
    frame.extend_from_slice(&[build.len() as u8]);
    frame.extend_from_slice(build);
    frame.extend_from_slice(body);
    frame.freeze()
}

impl From<&Hello> for v4::hello::Hello {
    fn from(hello: &Hello) -> v4::hello::Hello {
        let purpose = match &hello.purpose {
            ConnectionPurpose::Client => v4::hello::ConnectionPurpose::Client,
            ConnectionPurpose::Worker(worker) => {
                let WorkerHello { key, credential: _, inventory } = (**worker).clone();
                let worker = v4::hello::WorkerHello { key, inventory: inventory.into() };
                v4::hello::ConnectionPurpose::Worker(Box::new(worker))
            }
        };
        v4::hello::Hello { secret: hello.secret, purpose }
    }
}

impl From<v4::hello::ConnectionPurpose> for ConnectionPurpose {
    fn from(purpose: v4::hello::ConnectionPurpose) -> ConnectionPurpose {
        match purpose {
            v4::hello::ConnectionPurpose::Client => ConnectionPurpose::Client,
            v4::hello::ConnectionPurpose::Worker(worker) => {
                let v4::hello::WorkerHello { key, inventory } = *worker;
                let worker = WorkerHello { key, credential: None, inventory: inventory.into() };
                ConnectionPurpose::Worker(Box::new(worker))
            }
        }
    }
}

fn open_served(frame: &[u8]) -> Result<(ProtocolVersion, &[u8]), HelloError> {
    let (theirs, build, body) = open(frame).ok_or(HelloError::NotCohabit)?;
    let version = ProtocolVersion::from_number(theirs).ok_or(HelloError::OtherVersion { theirs, build })?;
    Ok((version, body))
}

/// Version, build and body; the build without what would disturb a terminal or a log.
fn open(frame: &[u8]) -> Option<(u32, String, &[u8])> {
    let rest = frame.strip_prefix(&MAGIC)?;
    let (version, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first()?;
    let (build, body) = rest.split_at_checked(usize::from(*length))?;
    let build = String::from_utf8_lossy(build).chars().filter(|c| !c.is_control()).collect();
    Some((u32::from_be_bytes(*version), build, body))
}

impl From<&HelloAnswer> for v4::hello::HelloAnswer {
    fn from(answer: &HelloAnswer) -> v4::hello::HelloAnswer {
        match answer {
            HelloAnswer::Accepted(HelloAccepted { cluster, by, build }) => {
                let (cluster, by, build) = (*cluster, by.clone().into(), build.clone());
                v4::hello::HelloAnswer::Accepted(v4::hello::HelloAccepted { cluster, by, build })
            }
            HelloAnswer::Refused { code, message } => {
                v4::hello::HelloAnswer::Refused { code: (*code).into(), message: message.clone() }
            }
        }
    }
}

impl From<v4::hello::HelloAnswer> for HelloAnswer {
    fn from(answer: v4::hello::HelloAnswer) -> HelloAnswer {
        match answer {
            v4::hello::HelloAnswer::Accepted(v4::hello::HelloAccepted { cluster, by, build }) => {
                HelloAnswer::Accepted(HelloAccepted { cluster, by: by.into(), build })
            }
            v4::hello::HelloAnswer::Refused { code, message } => {
                HelloAnswer::Refused { code: code.into(), message }
            }
        }
    }
}

impl From<HelloRefusalCode> for v4::hello::HelloRefusalCode {
    fn from(code: HelloRefusalCode) -> v4::hello::HelloRefusalCode {
        match code {
            HelloRefusalCode::UnknownToken => v4::hello::HelloRefusalCode::UnknownToken,
            HelloRefusalCode::ExpiredToken => v4::hello::HelloRefusalCode::ExpiredToken,
            HelloRefusalCode::WrongRole => v4::hello::HelloRefusalCode::WrongRole,
            // Of all that the peer knows, this makes it try again.
            HelloRefusalCode::Busy | HelloRefusalCode::Recovering => v4::hello::HelloRefusalCode::Busy,
            HelloRefusalCode::Undecodable => v4::hello::HelloRefusalCode::Undecodable,
        }
    }
}

impl From<v4::hello::HelloRefusalCode> for HelloRefusalCode {
    fn from(code: v4::hello::HelloRefusalCode) -> HelloRefusalCode {
        match code {
            v4::hello::HelloRefusalCode::UnknownToken => HelloRefusalCode::UnknownToken,
            v4::hello::HelloRefusalCode::ExpiredToken => HelloRefusalCode::ExpiredToken,
            v4::hello::HelloRefusalCode::WrongRole => HelloRefusalCode::WrongRole,
            v4::hello::HelloRefusalCode::Busy => HelloRefusalCode::Busy,
            v4::hello::HelloRefusalCode::Undecodable => HelloRefusalCode::Undecodable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A first frame as a later or an earlier version would send it.
    fn of_another_version(version: u32, build: &str) -> Bytes {
        envelope(version, build, b"a body that nobody here can read")
    }

    #[test]
    fn the_outer_layout_never_changes() {
        let frame = envelope(0x0102_0304, "9.9", b"body");
        assert_eq!(&frame[..], b"COHABIT\n\x01\x02\x03\x04\x039.9body");
    }

    #[test]
    fn a_version_that_is_not_served_is_named_with_its_build_and_the_remedy() {
        let error =
            |version| decode_hello(&of_another_version(version, "3.1\x1b[2J")).unwrap_err().to_string();
        let newer = error(7);
        assert!(newer.contains("cohabit 3.1[2J and speaks protocol 7"), "{newer}");
        let ours = format!("serves protocol 4 and speaks protocol {PROTOCOL_VERSION}: upgrade this one");
        assert!(newer.contains(&ours), "{newer}");
        let older = error(3);
        assert!(older.contains("speaks protocol 3") && older.ends_with("upgrade it"), "{older}");
    }

    #[test]
    fn a_hello_of_each_served_version_is_decoded_with_its_version() {
        let hello = Hello { secret: Secret::new([7; 32]), purpose: ConnectionPurpose::Client };
        for version in [ProtocolVersion::V4, ProtocolVersion::V5] {
            let frame = encode_hello(version, &hello).unwrap();
            assert_eq!(decode_hello(&frame).unwrap().0, version);
            assert_eq!(decode_secret(&frame).unwrap().0, version);
        }
    }

    #[test]
    fn an_answer_in_another_version_than_the_hello_is_refused() {
        let refused = HelloAnswer::Refused { code: HelloRefusalCode::Busy, message: "later".into() };
        let frame = encode_answer(ProtocolVersion::V4, &refused).unwrap();
        assert!(decode_answer(&frame, ProtocolVersion::V4).is_ok());
        let error = decode_answer(&frame, ProtocolVersion::V5).unwrap_err();
        assert!(matches!(error, HelloError::OtherVersion { theirs: 4, .. }), "{error}");
    }

    #[test]
    fn a_frame_that_is_cut_short_or_something_else_is_no_hello() {
        let whole = of_another_version(7, "3.1");
        for end in 0..MAGIC.len() + 5 + 3 {
            assert!(matches!(decode_hello(&whole[..end]), Err(HelloError::NotCohabit)), "{end}");
        }
        let get = b"GET / HTTP/1.1\r\nHost: head\r\n\r\n";
        assert!(matches!(decode_hello(get), Err(HelloError::NotCohabit)));
    }

    #[test]
    fn a_hello_does_not_show_its_secret() {
        let hello = Hello { secret: Secret::new([7; 32]), purpose: ConnectionPurpose::Client };
        assert_eq!(format!("{hello:?}"), "Hello { secret: secret, purpose: Client }");
    }

    #[test]
    fn a_head_in_recovery_mode_is_busy_for_a_peer_of_protocol_4() {
        let answer = HelloAnswer::Refused { code: HelloRefusalCode::Recovering, message: "later".into() };
        let read = |version| match decode_answer(&encode_answer(version, &answer).unwrap(), version).unwrap()
        {
            HelloAnswer::Refused { code, .. } => code,
            HelloAnswer::Accepted(accepted) => panic!("{accepted:?}"),
        };
        assert_eq!(read(ProtocolVersion::V4), HelloRefusalCode::Busy);
        assert_eq!(read(ProtocolVersion::V5), HelloRefusalCode::Recovering);
    }
}

//! Properties of parsers for untrusted input, for `integration/fuzz`, on the code that links use.
//!
//! Every function takes any bytes and panics where a promise is broken.

pub use cohabit_wire::v4;

use cohabit_wire::hello::{Hello, HelloAnswer, HelloError, MAGIC, decode_hello};
use cohabit_wire::message::{Message, NoMessage};
use cohabit_wire::{
    ClientServiceRequest, ClientServiceResponse, HeadServiceRequest, HeadServiceResponse,
    WorkerServiceRequest, WorkerServiceResponse, codec,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use crate::token::{Token, TokenError};
use crate::{frames, token_store};

/// Short enough that a few bytes can ask for more.
const LONGEST: usize = 4_096;

/// Frames are the same in whatever pieces their bytes arrive, and are written as they were read.
pub fn frames(bytes: &[u8]) {
    let Some((piece, stream)) = bytes.split_first() else { return };
    let whole = cut(stream, stream.len().max(1));
    assert_eq!(whole, cut(stream, usize::from(*piece).max(1)));
    let mut written = BytesMut::new();
    for frame in whole {
        assert!(frame.len() <= LONGEST);
        frames::framing(LONGEST).encode(frame, &mut written).expect("a frame that was read can be written");
    }
    assert!(stream.starts_with(&written));
}

/// The frames of a stream that arrives in pieces of this length, up to its end or to the first that is wrong.
fn cut(stream: &[u8], piece: usize) -> Vec<Bytes> {
    let (mut codec, mut arrived, mut frames) = (frames::framing(LONGEST), BytesMut::new(), Vec::new());
    for piece in stream.chunks(piece) {
        arrived.extend_from_slice(piece);
        loop {
            match codec.decode(&mut arrived) {
                Ok(Some(frame)) => frames.push(frame.freeze()),
                Ok(None) => break,
                Err(_too_long) => return frames,
            }
        }
    }
    frames
}

/// What clients, heads and workers say on links. The first byte chooses who speaks.
pub fn messages(bytes: &[u8]) {
    let Some((speaker, frame)) = bytes.split_first() else { return };
    match speaker % 8 {
        0 => settles::<Message<ClientServiceRequest, NoMessage>>(frame),
        1 => settles::<Message<NoMessage, ClientServiceResponse>>(frame),
        2 => settles::<Message<HeadServiceRequest, WorkerServiceResponse>>(frame),
        3 => settles::<Message<WorkerServiceRequest, HeadServiceResponse>>(frame),
        4 => settles::<Message<v4::ClientServiceRequest, NoMessage>>(frame),
        5 => settles::<Message<NoMessage, v4::ClientServiceResponse>>(frame),
        6 => settles::<Message<v4::WorkerServiceRequest, v4::HeadServiceResponse>>(frame),
        _ => settles::<Message<v4::HeadServiceRequest, v4::WorkerServiceResponse>>(frame),
    }
}

/// What is read, written and read again is written alike: numbers have more than one form, and only the
/// shortest is written.
fn settles<T: Serialize + DeserializeOwned>(frame: &[u8]) {
    let Ok(message) = codec::decode::<T>(frame) else { return };
    let written = codec::encode(&message).expect("what fitted into a frame still does");
    assert!(written.len() <= frame.len(), "it is written in its shortest form");
    let again = codec::decode::<T>(&written).expect("what was written can be read");
    assert_eq!(codec::encode(&again).expect("it was written before"), written);
}

/// First frames of both sides: their bodies, and what surrounds those in every version.
pub fn hello(bytes: &[u8]) {
    settles::<Hello>(bytes);
    settles::<HelloAnswer>(bytes);
    let sealed = [&MAGIC, bytes].concat();
    for frame in [bytes, &sealed] {
        if let Err(HelloError::OtherVersion { build, .. }) = decode_hello(frame) {
            assert!(!build.contains(char::is_control), "a build disturbs no terminal");
        }
    }
}

/// A token that is understood is written as every token is, and read again as the same.
pub fn token(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match text.parse::<Token>() {
        Ok(token) => {
            let shown = token.expose();
            assert!(shown.eq_ignore_ascii_case(text.trim()));
            let again: Token = shown.parse().expect("a token can be read");
            assert_eq!(again.expose(), shown);
            assert!(!format!("{token:?}").contains(&shown[shown.len() - 64..]), "it shows no secret");
        }
        Err(error) => {
            assert_eq!(error.to_string(), TokenError::Malformed.to_string(), "it repeats no secret")
        }
    }
}

/// The file of tokens is understood whole or refused by its name.
pub fn token_store(bytes: &[u8]) {
    token_store::fuzzing::reads(bytes);
}

/// What these bytes mean, as a message of a link.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    codec::decode(bytes).ok()
}

/// The bytes of a message.
pub fn encode<T: Serialize>(message: &T) -> Option<Bytes> {
    codec::encode(message).ok()
}

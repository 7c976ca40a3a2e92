//! Cuts a byte stream into frames: each is led by its length in four bytes, big end first.
//!
//! What a frame means is the business of `cohabit-wire`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cohabit_wire::codec::LENGTH_PREFIX;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder, Framed, LengthDelimitedCodec};

/// A byte stream, cut into frames.
pub(crate) type Frames<IO> = Framed<IO, Framing>;

/// Cuts a stream into frames, of which none may be longer than `longest`.
pub(crate) fn frames<IO: AsyncRead + AsyncWrite>(io: IO, longest: usize) -> Frames<IO> {
    Framed::new(io, framing(longest))
}

/// How bytes are cut into frames.
pub(crate) fn framing(longest: usize) -> Framing {
    let codec = LengthDelimitedCodec::builder()
        .length_field_length(LENGTH_PREFIX)
        .max_frame_length(longest)
        .new_codec();
    Framing { codec, begun: PartialFrameFlag::default() }
}

/// A codec that says whether a frame has begun and is not whole.
#[derive(Debug)]
pub(crate) struct Framing {
    codec: LengthDelimitedCodec,
    begun: PartialFrameFlag,
}

/// Whether a frame has begun and is not whole, as its codec last saw.
#[derive(Debug, Default, Clone)]
pub(crate) struct PartialFrameFlag(Arc<AtomicBool>);

impl Framing {
    pub(crate) fn begun(&self) -> PartialFrameFlag {
        self.begun.clone()
    }
}

impl PartialFrameFlag {
    pub(crate) fn is_true(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Decoder for Framing {
    type Item = BytesMut;
    type Error = io::Error;

    fn decode(&mut self, arrived: &mut BytesMut) -> io::Result<Option<BytesMut>> {
        // The codec takes the length away as soon as it is there, so what is left does not tell by itself.
        let was_begun = self.begun.is_true() || !arrived.is_empty();
        let frame = self.codec.decode(arrived)?;
        self.begun.0.store(frame.is_none() && was_begun, Ordering::Relaxed);
        Ok(frame)
    }
}

impl Encoder<Bytes> for Framing {
    type Error = io::Error;

    fn encode(&mut self, frame: Bytes, to: &mut BytesMut) -> io::Result<()> {
        self.codec.encode(frame, to)
    }
}

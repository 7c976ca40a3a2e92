//! A frame after the hello: a call, a cancellation or an answer.
//!
//! tarpc's own messages become ours on the way out, and ours become tarpc's on the way in. That keeps two
//! weaknesses of tarpc off the wire: a deadline travels as a span, so that a hostile one is capped instead of
//! overflowing a clock; an error travels as its sentence, without the kind that tarpc garbles. Both
//! directions of a link share this one type, and so do all versions so far.

use std::time::{Duration, Instant};

use cohabit_types::Span;
use serde::{Deserialize, Serialize};
use tarpc::context::Context;
use tarpc::{ClientMessage, Response, ServerError, trace};
use tokio_util::bytes::Bytes;

use crate::codec::{self, CodecError};

/// No call may last longer than a day; more is cut to this.
pub const MAX_CALL: Span = Span::from_secs(86_400);

/// A context for a call that may take this long.
#[must_use]
pub fn context_for(span: Span) -> Context {
    context(tarpc::context::current().trace_context, span)
}

/// One frame. A side sends `Message<its requests, its answers>`: a link carries calls both ways.
#[derive(Debug, Serialize, Deserialize)]
pub enum Message<Request, Answer> {
    /// A call of a method of the other side.
    Call {
        /// Its number among the calls of this side.
        id: u64,
        /// How long the caller waits.
        time_left: Span,
        /// tarpc's trace.
        trace: trace::Context,
        /// The method and its arguments.
        request: Request,
    },
    /// Nobody waits for this call any more.
    Cancel {
        /// The number of the call.
        id: u64,
        /// tarpc's trace.
        trace: trace::Context,
    },
    /// The answer to a call, or the sentence that says why there is none.
    Answer {
        /// The number of the call.
        id: u64,
        /// What the method returned.
        answer: Result<Answer, String>,
    },
}

/// The requests or answers of a direction that a link does not have.
#[derive(Debug, Serialize, Deserialize)]
pub enum NoMessage {}

/// What tarpc sends.
pub trait OutboundMessage {
    /// The bytes of its frame.
    ///
    /// # Errors
    /// When it does not fit a frame.
    fn into_bytes(self) -> Result<Bytes, CodecError>;
}

impl<Request: Serialize> OutboundMessage for ClientMessage<Request> {
    fn into_bytes(self) -> Result<Bytes, CodecError> {
        let message: Message<Request, NoMessage> = match self {
            ClientMessage::Request(call) => Message::Call {
                id: call.id,
                time_left: call.context.deadline.saturating_duration_since(Instant::now()).into(),
                trace: call.context.trace_context,
                request: call.message,
            },
            ClientMessage::Cancel { trace_context, request_id } => {
                Message::Cancel { id: request_id, trace: trace_context }
            }
            _ => unreachable!("a tarpc client sends nothing else"),
        };
        codec::encode(&message)
    }
}

impl<Answer: Serialize> OutboundMessage for Response<Answer> {
    /// An answer that is too long becomes an error of its call: the link and its other calls go on.
    fn into_bytes(self) -> Result<Bytes, CodecError> {
        let id = self.request_id;
        let answer = |answer| codec::encode(&Message::<NoMessage, Answer>::Answer { id, answer });
        answer(self.message.map_err(|error| error.detail)).or_else(|error| answer(Err(error.to_string())))
    }
}

/// A message that arrived, sorted by the side that it is for.
pub enum InboundMessage<Request, Answer> {
    /// For the service on this side.
    Served(ClientMessage<Request>),
    /// For the client on this side.
    Answered(Response<Answer>),
}

impl<Request, Answer> From<Message<Request, Answer>> for InboundMessage<Request, Answer> {
    fn from(message: Message<Request, Answer>) -> InboundMessage<Request, Answer> {
        match message {
            Message::Call { id, time_left, trace, request } => {
                let call = tarpc::Request { context: context(trace, time_left), id, message: request };
                InboundMessage::Served(ClientMessage::Request(call))
            }
            Message::Cancel { id, trace } => {
                InboundMessage::Served(ClientMessage::Cancel { trace_context: trace, request_id: id })
            }
            Message::Answer { id, answer } => {
                InboundMessage::Answered(Response { request_id: id, message: answer.map_err(failure) })
            }
        }
    }
}

/// The error of a call whose handler, not whose request, is at fault.
#[must_use]
pub fn failure(detail: String) -> ServerError {
    ServerError::new(std::io::ErrorKind::Other, detail)
}

fn context(trace: trace::Context, time_left: Span) -> Context {
    let mut context = tarpc::context::current();
    context.trace_context = trace;
    context.deadline = Instant::now() + Duration::from(time_left.min(MAX_CALL));
    context
}

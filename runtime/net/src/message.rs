//! What travels on a link once both sides have said hello: calls, cancellations and answers.
//!
//! tarpc's own messages are turned into ours on the way out and back on the way in. That keeps two of its
//! weaknesses off the wire: a deadline travels as a span, and a hostile one is capped instead of overflowing
//! a clock; an error travels as its sentence, without the kind that tarpc garbles. Both directions of a link
//! share this one type.

use std::time::{Duration, Instant};

use cohabit_types::Span;
use serde::{Deserialize, Serialize};
use tarpc::context::Context;
use tarpc::{ClientMessage, Response, ServerError, trace};
use tokio_util::bytes::Bytes;

use crate::wire::{self, WireError};

/// No call may last longer than a day; more is cut to this.
pub const MAX_CALL: Span = Span::from_secs(86_400);

/// A context for a call that may take this long.
#[must_use]
pub fn context_for(span: Span) -> Context {
    context(tarpc::context::current().trace_context, span)
}

/// One frame. Requests go with answers of the other direction: a side sends `Message<its requests, its
/// answers>`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message<Request, Answer> {
    /// Do this.
    Call { id: u64, time_left: Span, trace: trace::Context, request: Request },
    /// Nobody waits for this call any more.
    Cancel { id: u64, trace: trace::Context },
    /// The answer to a call, or the sentence that says why there is none.
    Answer { id: u64, answer: Result<Answer, String> },
}

/// Requests or answers of the direction that a link does not have.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum NoMessage {}

/// What tarpc sends: it becomes the bytes of one frame.
pub(crate) trait OutboundMessage {
    fn into_bytes(self) -> Result<Bytes, WireError>;
}

impl<Request: Serialize> OutboundMessage for ClientMessage<Request> {
    fn into_bytes(self) -> Result<Bytes, WireError> {
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
        wire::encode(&message)
    }
}

impl<Answer: Serialize> OutboundMessage for Response<Answer> {
    /// An answer that is too long becomes an error of its call: the link and the other calls live on.
    fn into_bytes(self) -> Result<Bytes, WireError> {
        let id = self.request_id;
        let answer = |answer| wire::encode(&Message::<NoMessage, Answer>::Answer { id, answer });
        answer(self.message.map_err(|error| error.detail)).or_else(|error| answer(Err(error.to_string())))
    }
}

/// A message that arrived, for whom it is.
pub(crate) enum InboundMessage<Request, Answer> {
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
pub(crate) fn failure(detail: String) -> ServerError {
    ServerError::new(std::io::ErrorKind::Other, detail)
}

fn context(trace: trace::Context, time_left: Span) -> Context {
    let mut context = tarpc::context::current();
    context.trace_context = trace;
    context.deadline = Instant::now() + Duration::from(time_left.min(MAX_CALL));
    context
}

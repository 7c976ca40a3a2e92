//! One connection, two directions of calls: incoming frames are sorted to the client and to the service on
//! this side, and what either of them sends leaves in order.
//!
//! Each gets a [`CallTransport`]: a tarpc transport over two small queues. Messages become bytes there, so
//! that one that is too long fails its own call. The queues are those of `futures`, because tarpc spins for
//! ever over a sink whose `poll_flush` is ready while its `poll_ready` is not; theirs never is.
//!
//! A peer has limited time for each message: to send the rest of one that has begun, and to take one. An idle
//! link sets no timer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use cohabit_types::Span;
use cohabit_wire::codec;
use cohabit_wire::message::{InboundMessage, Message, OutboundMessage};
use futures::channel::mpsc;
use futures::{FutureExt, Sink, SinkExt, Stream, StreamExt, stream};
use serde::de::DeserializeOwned;
use tarpc::{ClientMessage, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep, timeout};
use tokio_util::bytes::Bytes;

use crate::frames::{Frames, PartialFrameFlag};
use crate::link_end::LinkEnd;

/// Messages that may wait between the connection and a transport, in each direction.
const QUEUE: usize = 32;

/// How long the other side may take over one message, unless the head's limits say otherwise.
pub(crate) const MESSAGE_LIMIT: Duration = Duration::from_secs(60);

/// One side's end of a link: `called` for its client, `served` for its service.
pub(crate) struct Duplex<Served, Answered> {
    pub(crate) called: CallTransport<Response<Answered>>,
    pub(crate) served: CallTransport<ClientMessage<Served>>,
}

/// A tarpc transport on which `In` arrives.
pub(crate) struct CallTransport<In> {
    arriving: mpsc::Receiver<In>,
    leaving: mpsc::Sender<Bytes>,
}

/// The two transports of a connection, and the future that moves messages between it and them while it is
/// polled. `first` leaves before everything else.
pub(crate) fn duplex<Served, Answered>(
    frames: Frames<impl AsyncRead + AsyncWrite + Unpin>,
    first: Option<Bytes>,
    message_limit: Duration,
) -> (Duplex<Served, Answered>, impl Future<Output = LinkEnd>)
where
    Served: DeserializeOwned,
    Answered: DeserializeOwned,
{
    let (leaving, to_send) = mpsc::channel(QUEUE);
    let (to_client, for_client) = mpsc::channel(QUEUE);
    let (to_service, for_service) = mpsc::channel(QUEUE);
    let ports = Duplex {
        called: CallTransport { arriving: for_client, leaving: leaving.clone() },
        served: CallTransport { arriving: for_service, leaving },
    };
    let begun = frames.codec().begun();
    let (sink, stream) = frames.split();
    let stream = whole_in_time(stream, begun, message_limit);
    let to_send = stream::iter(first).chain(to_send);
    let pump = async move {
        tokio::select! {
            end = sort(stream, to_client, to_service) => end,
            end = send(to_send, sink, message_limit) => end,
        }
    };
    (ports, pump)
}

/// The frames that arrive; an error if one that has begun is not complete in time.
fn whole_in_time<Frame>(
    mut frames: impl Stream<Item = io::Result<Frame>> + Unpin,
    begun: PartialFrameFlag,
    limit: Duration,
) -> impl Stream<Item = io::Result<Frame>> {
    let mut late: Option<Pin<Box<Sleep>>> = None;
    stream::poll_fn(move |context| {
        let frame = frames.poll_next_unpin(context);
        if frame.is_ready() || !begun.is_true() {
            late = None;
            return frame;
        }
        let late = late.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(late.as_mut().poll(context));
        Poll::Ready(Some(Err(stalled("the rest of a message did not arrive", limit))))
    })
}

/// Sends the waiting frames, as long as the other side takes each in time.
async fn send(
    mut waiting: impl Stream<Item = Bytes> + Unpin,
    mut sink: impl Sink<Bytes, Error = io::Error> + Unpin,
    limit: Duration,
) -> LinkEnd {
    let mut next = waiting.next().await;
    while let Some(frame) = next {
        if let Err(error) = in_time(sink.feed(frame), limit).await {
            return LinkEnd::of(&error);
        }
        // Frames that wait already leave with the same flush.
        next = match waiting.next().now_or_never() {
            Some(more) => more,
            None => match in_time(sink.flush(), limit).await {
                Ok(()) => waiting.next().await,
                Err(error) => return LinkEnd::of(&error),
            },
        };
    }
    LinkEnd::ClosedHere
}

async fn in_time(sent: impl Future<Output = io::Result<()>>, limit: Duration) -> io::Result<()> {
    timeout(limit, sent).await.unwrap_or_else(|_late| Err(stalled("a message was not accepted", limit)))
}

fn stalled(what: &str, limit: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("{what} within {}", Span::from(limit)))
}

/// Brings each frame to its transport until the connection ends.
async fn sort<Served, Answered>(
    mut frames: impl Stream<Item = io::Result<impl AsRef<[u8]>>> + Unpin,
    mut to_client: mpsc::Sender<Response<Answered>>,
    mut to_service: mpsc::Sender<ClientMessage<Served>>,
) -> LinkEnd
where
    Served: DeserializeOwned,
    Answered: DeserializeOwned,
{
    while let Some(frame) = frames.next().await {
        let message: Message<Served, Answered> = match frame.map(|frame| codec::decode(frame.as_ref())) {
            Err(error) => return LinkEnd::of(&error),
            Ok(Err(error)) => return LinkEnd::Broken(error.to_string()),
            Ok(Ok(message)) => message,
        };
        let taken = match message.into() {
            InboundMessage::Answered(answer) => to_client.send(answer).await,
            InboundMessage::Served(call) => to_service.send(call).await,
        };
        if taken.is_err() {
            return LinkEnd::ClosedHere;
        }
    }
    LinkEnd::ClosedByPeer
}

impl<In> Stream for CallTransport<In> {
    type Item = io::Result<In>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.arriving.poll_next_unpin(context).map(|message| message.map(Ok))
    }
}

impl<In, Out: OutboundMessage> Sink<Out> for CallTransport<In> {
    type Error = io::Error;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(ready!(self.leaving.poll_ready(context)).map_err(closed))
    }

    fn start_send(mut self: Pin<&mut Self>, message: Out) -> io::Result<()> {
        let bytes =
            message.into_bytes().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.leaving.start_send(bytes).map_err(closed)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.leaving.poll_flush_unpin(context).map_err(closed)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.leaving.poll_close_unpin(context).map_err(closed)
    }
}

fn closed(_: mpsc::SendError) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the link has ended")
}

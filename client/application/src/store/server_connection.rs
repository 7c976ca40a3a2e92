//! The connection of one process with the store of its node.

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::rc::Rc;

use bytes::BytesMut;
use cohabit_application_core::StoreRequest;
use cohabit_types::RankId;
use futures::future::try_join;
use tokio::net::UnixStream;

use super::frame_stream::{FrameReader, send_frame};
use super::reply_queue::ReplyQueue;
use super::server::StoreServer;
use crate::transport::{LinkFailure, StoreHello};

/// Serves a process until its connection ends. `buffer` has what was read already.
pub(super) async fn serve(
    server: Rc<StoreServer>,
    stream: UnixStream,
    buffer: BytesMut,
    StoreHello { from, .. }: StoreHello,
) {
    let Some(replies) = server.join(from) else {
        tracing::warn!(%from, "closed a second connection of a process with the store");
        return;
    };
    let reading = read_requests(&server, from, FrameReader::new(&stream, buffer), &replies);
    // Both go on for ever unless they fail.
    let ended: Result<(Infallible, Infallible), LinkFailure> =
        try_join(reading, write_replies(&server, &stream, &replies)).await;
    match ended {
        Err(LinkFailure::Broken(_) | LinkFailure::Closed) => {}
        Err(failure @ LinkFailure::Protocol(_)) => tracing::warn!(%from, %failure, "cut a process off"),
        Ok((never, _)) => match never {},
    }
    server.leave(from);
}

async fn read_requests(
    server: &Rc<StoreServer>,
    from: RankId,
    mut frames: FrameReader<'_>,
    replies: &ReplyQueue,
) -> Result<Infallible, LinkFailure> {
    loop {
        let request: StoreRequest = frames.next().await?;
        frames.no_descriptor()?;
        replies.has_room().await;
        server.receive(from, request)?;
    }
}

async fn write_replies(
    server: &StoreServer,
    stream: &UnixStream,
    replies: &ReplyQueue,
) -> Result<Infallible, LinkFailure> {
    loop {
        let reply = replies.next().await;
        let memory = server.memory_of(&reply);
        // An object that has gone meanwhile was given up by this process.
        if memory.is_some() || !reply.has_descriptor() {
            send_frame(stream, &reply, memory.as_ref().map(AsFd::as_fd)).await?;
        }
    }
}

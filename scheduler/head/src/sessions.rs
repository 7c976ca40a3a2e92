//! Sessions: one for each connection, from the handshake to the end of its link.
//!
//! A session translates between a link and the driver and keeps no state of jobs. An error of a peer ends
//! the session of that peer, never the head. Sessions know one protocol, the current one: `cohabit-wire`
//! translates for older peers.

pub(crate) mod admit;
mod answer_pacer;
mod application;
mod changes;
mod checkpoints;
mod client;
mod code;
mod context;
mod copy;
mod feed;
mod forward;
mod forward_limits;
mod forward_routes;
mod inspection;
mod lookup;
mod nodes;
mod permission;
mod privacy;
mod rank_output;
mod report;
pub(crate) mod status;
mod tokens;
mod usage;
mod user_limiter;
mod viewer;
mod worker;

use std::convert::Infallible;
use std::sync::Arc;

use cohabit_actor::{Actor, ActorFailure, Context};
use cohabit_net::{Incoming, Listener};
use cohabit_types::Role;
use tokio::task::JoinSet;

pub(crate) use answer_pacer::AnswerPacer;
use application::ApplicationSession;
use client::ClientSession;
pub(crate) use context::SessionContext;
pub(crate) use forward_limits::ForwardLimits;
pub(crate) use user_limiter::UserLimiter;
use viewer::ViewerSession;
use worker::WorkerSessionTask;

/// Accepts connections, and holds their sessions. Stopped, it ends them all.
pub(crate) struct Sessions {
    /// Until the start.
    listener: Option<Listener>,
    session_context: Arc<SessionContext>,
}

impl Sessions {
    pub(crate) fn new(listener: Listener, session_context: SessionContext) -> Sessions {
        Sessions { listener: Some(listener), session_context: Arc::new(session_context) }
    }
}

impl Actor for Sessions {
    type Message = Infallible;

    async fn started(&mut self, context: &mut Context<Sessions>) -> Result<(), ActorFailure> {
        let listener = self.listener.take();
        let listener = listener
            .ok_or_else(|| ActorFailure::from_message("the port was lost with an earlier failure"))?;
        context.spawn_task(accept_all(listener, Arc::clone(&self.session_context)));
        Ok(())
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Sessions>) -> Result<(), ActorFailure> {
        match never {}
    }
}

async fn accept_all(mut listener: Listener, session_context: Arc<SessionContext>) {
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            peer = listener.accept() => {
                sessions.spawn(serve(peer, Arc::clone(&session_context)));
            }
            Some(ended) = sessions.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a session failed");
                }
            }
        }
    }
}

async fn serve(peer: Incoming, session_context: Arc<SessionContext>) {
    match peer {
        Incoming::Client(client) => {
            let (by, address) = (client.by().clone(), client.address());
            tracing::debug!(user = by.user, %address, "a client connected");
            let end = match client.application() {
                Some(application) => {
                    client.serve(ApplicationSession::new(application, by.clone(), session_context)).await
                }
                None if by.role == Role::Viewer => {
                    client.serve(ViewerSession::new(by.clone(), session_context)).await
                }
                None => client.serve(ClientSession::new(by.clone(), session_context)).await,
            };
            tracing::debug!(user = by.user, %address, %end, "a client's link ended");
        }
        Incoming::Worker(worker) => WorkerSessionTask::new(worker.key(), session_context).run(worker).await,
    }
}

//! The other ends of the sessions of a process, and what becomes of their frames.

use std::rc::Rc;
use std::sync::Arc;

use cohabit_application_core::{LinkNumber, Packet, SessionError, SessionHello};
use cohabit_types::RankId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::member_process::MemberProcess;
use super::member_state::MemberState;
use crate::transport::{FrameHandler, LinkFailure, ReceivedFrames, SendBuffer, SessionEnd};

/// The other end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    Coordinator,
    /// It has an actor that this process calls.
    Callee(RankId),
    /// It calls the actor of this process.
    Caller(RankId),
}

/// What is done after frames were handled: the host runs what they started.
pub(super) type AfterFrames = Rc<dyn Fn()>;

/// One connection of a session.
pub(super) struct PeerConnection {
    pub(super) process: Arc<MemberProcess>,
    pub(super) peer: Peer,
    pub(super) link: LinkNumber,
    pub(super) after: AfterFrames,
}

/// Runs the expression on the session with the peer, if it is not closed.
macro_rules! on_session {
    ($state:expr, $peer:expr, $session:ident => $body:expr) => {
        match $peer {
            Peer::Coordinator => {
                let $session = &mut $state.coordinator;
                Some($body)
            }
            Peer::Callee(member) => $state.callees.get_mut(&member).map(|$session| $body),
            Peer::Caller(member) => $state.callers.get_mut(&member).map(|$session| $body),
        }
    };
}

impl<H> MemberState<H> {
    /// What to say on a new connection to the peer; none if the session is closed.
    pub(super) fn dial(&mut self, peer: Peer) -> Option<SessionHello> {
        on_session!(self, peer, session => session.dial())
    }

    /// The peer has answered. Whether its connection is to be carried on.
    pub(super) fn opened(
        &mut self,
        peer: Peer,
        hello: &SessionHello,
        connection: &Arc<SendBuffer>,
    ) -> Result<bool, SessionError> {
        on_session!(self, peer, session => session.opened(hello, connection)).unwrap_or(Ok(false))
    }

    pub(super) fn disconnected(&mut self, peer: Peer, link: LinkNumber) {
        on_session!(self, peer, session => session.closed(link));
    }

    fn acknowledge(&mut self, peer: Peer, link: LinkNumber) {
        on_session!(self, peer, session => session.acknowledge(link));
    }

    /// The next new frame; none if no more are complete.
    fn next_frame<F: Clone + Serialize, G: DeserializeOwned>(
        session: Option<&mut SessionEnd<F>>,
        link: LinkNumber,
        frames: &mut ReceivedFrames<'_>,
    ) -> Result<Option<Option<G>>, LinkFailure> {
        let session = session.ok_or(LinkFailure::Closed)?;
        let Some(packet) = frames.take::<Packet<G>>()? else { return Ok(None) };
        Ok(Some(session.receive(link, packet)?))
    }

    fn deliver(
        &mut self,
        peer: Peer,
        link: LinkNumber,
        frames: &mut ReceivedFrames<'_>,
    ) -> Result<(), LinkFailure> {
        match peer {
            Peer::Coordinator => {
                while let Some(frame) = Self::next_frame(Some(&mut self.coordinator), link, frames)? {
                    frame.into_iter().for_each(|frame| self.receive(frame));
                }
            }
            Peer::Callee(member) => {
                while let Some(frame) = Self::next_frame(self.callees.get_mut(&member), link, frames)? {
                    frame.into_iter().for_each(|frame| self.receive_from_callee(member, frame));
                }
            }
            Peer::Caller(member) => {
                while let Some(frame) = Self::next_frame(self.callers.get_mut(&member), link, frames)? {
                    frame.into_iter().for_each(|frame| self.receive_from_caller(member, frame));
                }
            }
        }
        on_session!(self, peer, session => session.wake());
        Ok(())
    }
}

impl FrameHandler for PeerConnection {
    fn deliver(&self, frames: &mut ReceivedFrames<'_>) -> Result<(), LinkFailure> {
        self.process.with(|state| state.deliver(self.peer, self.link, frames))?;
        self.process.settled.notify_waiters();
        (self.after)();
        Ok(())
    }

    fn acknowledge(&self) {
        self.process.with(|state| state.acknowledge(self.peer, self.link));
    }
}

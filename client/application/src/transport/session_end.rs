//! A session of the core, with the connection on which its packets travel now.

use std::sync::Arc;

use cohabit_application_core::{LinkNumber, Packet, Session, SessionError, SessionHello};
use cohabit_types::RankId;
use serde::Serialize;

use super::send_buffer::SendBuffer;

/// One end of a session; it sends frames `F`.
#[derive(Debug)]
pub(crate) struct SessionEnd<F> {
    session: Session<F>,
    connection: Option<Arc<SendBuffer>>,
}

impl<F: Clone + Serialize> SessionEnd<F> {
    pub(crate) const fn new(own: RankId, peer: RankId) -> SessionEnd<F> {
        SessionEnd { session: Session::new(own, peer), connection: None }
    }

    /// Sends a frame now, or with the next connection.
    pub(crate) fn send(&mut self, frame: F) {
        if let (Some(packet), Some(connection)) = (self.session.send(frame), &self.connection) {
            connection.push(&packet);
        }
    }

    /// What to say on a new connection that this end dials.
    pub(crate) const fn dial(&mut self) -> SessionHello {
        self.session.dial()
    }

    /// The dialed end has answered. Whether the connection is the latest one.
    ///
    /// # Errors
    /// If the two ends do not belong together.
    pub(crate) fn opened(
        &mut self,
        hello: &SessionHello,
        connection: &Arc<SendBuffer>,
    ) -> Result<bool, SessionError> {
        let mut packets = Vec::new();
        self.session.opened(hello, &mut packets)?;
        let is_latest = self.session.open_link() == Some(hello.link);
        if is_latest {
            self.replace(connection, &packets);
        }
        Ok(is_latest)
    }

    /// The other end has dialed. Whether the connection is the latest one.
    ///
    /// # Errors
    /// If the two ends do not belong together.
    pub(crate) fn accept(
        &mut self,
        hello: &SessionHello,
        connection: &Arc<SendBuffer>,
    ) -> Result<bool, SessionError> {
        let mut packets = Vec::new();
        let Some(answer) = self.session.accept(hello, &mut packets)? else { return Ok(false) };
        connection.push(&answer);
        self.replace(connection, &packets);
        Ok(true)
    }

    fn replace(&mut self, connection: &Arc<SendBuffer>, packets: &[Packet<F>]) {
        if let Some(earlier) = self.connection.replace(Arc::clone(connection)) {
            earlier.close();
        }
        packets.iter().for_each(|packet| connection.push(packet));
    }

    /// The frame in a packet, if it is new.
    ///
    /// # Errors
    /// If the other end broke the protocol.
    pub(crate) fn receive<G>(
        &mut self,
        link: LinkNumber,
        packet: Packet<G>,
    ) -> Result<Option<G>, SessionError> {
        self.session.receive(link, packet)
    }

    /// Sends an acknowledgement, if one is due on this connection.
    pub(crate) fn acknowledge(&mut self, link: LinkNumber) {
        if self.session.open_link() != Some(link) {
            return;
        }
        if let (Some(packet), Some(connection)) = (self.session.acknowledgement(), &self.connection) {
            connection.push(&packet);
        }
    }

    /// A connection has ended.
    pub(crate) fn closed(&mut self, link: LinkNumber) {
        let was_open = self.session.open_link() == Some(link);
        self.session.closed(link);
        if was_open {
            self.connection = None;
        }
    }

    /// The last connection that was opened, which may have ended.
    pub(crate) const fn last_link(&self) -> LinkNumber {
        self.session.last_link()
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        if let Some(connection) = &self.connection {
            connection.close();
        }
    }

    /// Lets the connection acknowledge what was received.
    pub(crate) fn wake(&self) {
        if let Some(connection) = &self.connection {
            connection.wake();
        }
    }

    /// Whether the other end has everything.
    pub(crate) fn is_settled(&self) -> bool {
        self.session.unacknowledged() == 0
    }
}

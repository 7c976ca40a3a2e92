//! Reliable, ordered delivery between two living members over connections that break.
//!
//! Both ends number what they send and keep it until the other end has acknowledged it. After a new
//! connection is opened, each end sends again what the other has not received; duplicates are dropped. So
//! each frame arrives exactly once and in order, as long as both processes live. One side always dials; it
//! numbers its connections, and a newer one replaces all earlier ones.

use std::collections::VecDeque;

use cohabit_types::RankId;
use serde::{Deserialize, Serialize};

use crate::ids::LinkNumber;

/// The first thing that each end sends on a connection: first the dialing end, then the accepting one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHello {
    /// The member that sends this.
    pub from: RankId,
    /// The member that it wants to talk to; anybody else closes the connection.
    pub to: RankId,
    /// Which connection of the session this is. The answer repeats it.
    pub link: LinkNumber,
    /// The number of the last frame that the sender has received.
    pub received: u64,
}

/// What travels on an open connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Packet<F> {
    /// A frame, with an acknowledgement.
    Frame {
        /// The number of the frame in its direction, from 1.
        number: u64,
        /// The number of the last frame that the sender has received.
        received: u64,
        /// The frame.
        frame: F,
    },
    /// An acknowledgement alone.
    Received {
        /// The number of the last frame that the sender has received.
        received: u64,
    },
}

/// The other end broke the protocol: the session cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// A connection for or from somebody else.
    #[error("a connection from {} to {} for the session of {own} with {peer}", hello.from, hello.to)]
    WrongMember {
        /// What was said on it.
        hello: Box<SessionHello>,
        /// This end.
        own: RankId,
        /// The other end.
        peer: RankId,
    },
    /// A frame is missing.
    #[error("{peer} sent frame {number} after frame {received}")]
    Gap {
        /// The other end.
        peer: RankId,
        /// The frame that came.
        number: u64,
        /// The frame before.
        received: u64,
    },
    /// The other end acknowledged what was never sent.
    #[error("{peer} has received {received} frames of {sent}")]
    NeverSent {
        /// The other end.
        peer: RankId,
        /// What it says.
        received: u64,
        /// What was sent.
        sent: u64,
    },
    /// The other end does not know what it had acknowledged.
    #[error("{peer} has received {received} frames and had acknowledged {acknowledged}")]
    Forgotten {
        /// The other end.
        peer: RankId,
        /// What it says.
        received: u64,
        /// What it had said.
        acknowledged: u64,
    },
}

/// One end of a session; `F` is a frame that it sends, in the form in which it is sent again.
#[derive(Debug)]
pub struct Session<F> {
    own: RankId,
    peer: RankId,
    /// Number of the last frame that was sent.
    sent: u64,
    /// The last of the frames that were sent.
    unacknowledged: VecDeque<F>,
    /// Number of the last frame that was received.
    received: u64,
    /// The last number of which the other end was told.
    told: u64,
    /// The last connection.
    link: LinkNumber,
    progress: LinkProgress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkProgress {
    Closed,
    /// The hello was sent, the answer has not come.
    Dialed,
    Open,
}

impl<F: Clone> Session<F> {
    /// A new session between two members that have never talked.
    #[must_use]
    pub const fn new(own: RankId, peer: RankId) -> Session<F> {
        Session {
            own,
            peer,
            sent: 0,
            unacknowledged: VecDeque::new(),
            received: 0,
            told: 0,
            link: LinkNumber(0),
            progress: LinkProgress::Closed,
        }
    }

    /// The dialing end has a new connection: what to send on it. Earlier connections no longer count.
    pub const fn dial(&mut self) -> SessionHello {
        self.link = LinkNumber(self.link.0 + 1);
        self.progress = LinkProgress::Dialed;
        self.hello()
    }

    /// The accepting end got a hello: the answer, and in `packets` what follows it. Nothing if a later
    /// connection came first: close this one.
    ///
    /// # Errors
    ///
    /// If the two ends do not belong together.
    pub fn accept(
        &mut self,
        hello: &SessionHello,
        packets: &mut Vec<Packet<F>>,
    ) -> Result<Option<SessionHello>, SessionError> {
        self.check_members(hello)?;
        if hello.link <= self.link {
            return Ok(None);
        }
        self.acknowledge_hello(hello.received)?;
        self.link = hello.link;
        let answer = self.hello();
        self.open(packets);
        Ok(Some(answer))
    }

    /// The dialing end got the answer to a hello: in `packets` what to send. Nothing happens if it dialed
    /// again meanwhile: close the connection.
    ///
    /// # Errors
    ///
    /// If the two ends do not belong together.
    pub fn opened(&mut self, hello: &SessionHello, packets: &mut Vec<Packet<F>>) -> Result<(), SessionError> {
        self.check_members(hello)?;
        if hello.link == self.link && self.progress == LinkProgress::Dialed {
            self.acknowledge_hello(hello.received)?;
            self.open(packets);
        }
        Ok(())
    }

    /// A connection is closed. It may be one that no longer counts.
    pub fn closed(&mut self, link: LinkNumber) {
        if link == self.link {
            self.progress = LinkProgress::Closed;
        }
    }

    /// The last connection that was dialed, open or not.
    #[must_use]
    pub const fn last_link(&self) -> LinkNumber {
        self.link
    }

    /// The connection on which packets travel now.
    #[must_use]
    pub fn open_link(&self) -> Option<LinkNumber> {
        (self.progress == LinkProgress::Open).then_some(self.link)
    }

    /// Number of frames that were sent and are not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.unacknowledged.len()
    }

    /// Sends a frame: the packet for the open connection. Without one, the next connection brings it.
    pub fn send(&mut self, frame: F) -> Option<Packet<F>> {
        self.sent += 1;
        let packet = (self.progress == LinkProgress::Open).then(|| {
            self.told = self.received;
            Packet::Frame { number: self.sent, received: self.received, frame: frame.clone() }
        });
        self.unacknowledged.push_back(frame);
        packet
    }

    /// A packet came: the frame in it, if it is new. Packets of a connection that no longer counts are
    /// ignored; what was in them comes again.
    ///
    /// # Errors
    ///
    /// If a frame is missing or an acknowledgement is wrong.
    pub fn receive<G>(&mut self, link: LinkNumber, packet: Packet<G>) -> Result<Option<G>, SessionError> {
        if self.open_link() != Some(link) {
            return Ok(None);
        }
        let (Packet::Frame { received, .. } | Packet::Received { received }) = &packet;
        self.acknowledge_up_to(*received)?;
        match packet {
            Packet::Frame { number, frame, .. } if number == self.received + 1 => {
                self.received = number;
                Ok(Some(frame))
            }
            Packet::Frame { number, .. } if number > self.received => {
                Err(SessionError::Gap { peer: self.peer, number, received: self.received })
            }
            Packet::Frame { .. } | Packet::Received { .. } => Ok(None),
        }
    }

    /// An acknowledgement, if the other end has not been told of all that was received. The shell asks after
    /// it has handled a batch of frames and sent what they made it send.
    pub fn acknowledgement(&mut self) -> Option<Packet<F>> {
        let due = self.progress == LinkProgress::Open && self.told < self.received;
        due.then(|| {
            self.told = self.received;
            Packet::Received { received: self.received }
        })
    }

    const fn hello(&self) -> SessionHello {
        SessionHello { from: self.own, to: self.peer, link: self.link, received: self.received }
    }

    fn check_members(&self, hello: &SessionHello) -> Result<(), SessionError> {
        let (own, peer) = (self.own, self.peer);
        if (hello.from, hello.to) == (peer, own) {
            Ok(())
        } else {
            Err(SessionError::WrongMember { hello: Box::new(*hello), own, peer })
        }
    }

    fn open(&mut self, packets: &mut Vec<Packet<F>>) {
        self.progress = LinkProgress::Open;
        self.told = self.received;
        let first = self.sent - self.unacknowledged.len() as u64 + 1;
        packets.extend((first..).zip(&self.unacknowledged).map(|(number, frame)| Packet::Frame {
            number,
            received: self.received,
            frame: frame.clone(),
        }));
    }

    fn acknowledge_hello(&mut self, received: u64) -> Result<(), SessionError> {
        let acknowledged = self.sent - self.unacknowledged.len() as u64;
        if received < acknowledged {
            return Err(SessionError::Forgotten { peer: self.peer, received, acknowledged });
        }
        self.acknowledge_up_to(received)
    }

    fn acknowledge_up_to(&mut self, received: u64) -> Result<(), SessionError> {
        if received > self.sent {
            return Err(SessionError::NeverSent { peer: self.peer, received, sent: self.sent });
        }
        let acknowledged = self.sent - self.unacknowledged.len() as u64;
        self.unacknowledged.drain(..received.saturating_sub(acknowledged) as usize);
        Ok(())
    }
}

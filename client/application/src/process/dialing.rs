//! Dials the coordinator and the members whose actors are called, and dials again when a connection breaks.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cohabit_application_core::{MemberPlace, SessionHello};
use cohabit_types::{RankId, Rendezvous, RunnerRole};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use super::member_process::MemberProcess;
use super::peer::{AfterFrames, Peer, PeerConnection};
use crate::transport::{
    DialedConnection, HelloPurpose, LinkFailure, MemberHello, SendBuffer, carry, dial_here, dial_there,
};

/// Pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long a coordinator may take to listen that never did. The head ends runners of one that has ended.
const COORDINATOR_START: Duration = Duration::from_secs(60);

/// Dials for one process.
pub(crate) struct Dialer {
    process: Arc<MemberProcess>,
    after: AfterFrames,
}

/// How a connection that was dialed ended.
enum DialEnd {
    /// The session is closed: nobody needs it any more.
    NotNeeded,
    /// It was open, and broke.
    Broken,
    /// On this node, nobody listens.
    NobodyListens,
    /// It could not be opened now.
    Failed,
}

/// Where a process is dialed.
enum DialTarget {
    /// On this node.
    Here,
    /// On another one, which is reached there.
    There(Rendezvous),
}

impl Dialer {
    pub(crate) fn new(process: &Arc<MemberProcess>, after: impl Fn() + 'static) -> Dialer {
        Dialer { process: Arc::clone(process), after: Rc::new(after) }
    }

    /// Keeps connections to all members that are asked for.
    pub(crate) async fn dial_members(self, mut members: UnboundedReceiver<RankId>) {
        let dialer = Rc::new(self);
        while let Some(member) = members.recv().await {
            let dialer = Rc::clone(&dialer);
            spawn_local(async move { dialer.keep_callee(member).await });
        }
    }

    /// Connects to a callee until its session is closed: the coordinator says when it has ended.
    async fn keep_callee(&self, member: RankId) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.connect(Peer::Callee(member), HelloPurpose::Calls).await {
                DialEnd::NotNeeded => return,
                DialEnd::Broken => pause = FIRST_PAUSE,
                DialEnd::NobodyListens | DialEnd::Failed => {
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Opens one connection, and carries it until it ends.
    async fn connect(&self, peer: Peer, purpose: HelloPurpose) -> DialEnd {
        let Some(target) = self.target(peer) else { return DialEnd::Failed };
        let Some(hello) = self.process.with(|state| state.dial(peer)) else { return DialEnd::NotNeeded };
        let link = hello.link;
        let ended = self.open_and_carry(peer, &target, purpose, hello).await;
        self.process.with(|state| state.disconnected(peer, link));
        match (ended, target) {
            (Ok(()), _) => DialEnd::Broken,
            (Err(LinkFailure::Broken(error)), DialTarget::Here) => {
                let nobody = [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound];
                if nobody.contains(&error.kind()) { DialEnd::NobodyListens } else { DialEnd::Failed }
            }
            (Err(LinkFailure::Broken(error)), DialTarget::There(at)) => {
                // The node may be reached again.
                tracing::debug!(address = %at.address, port = at.port, %error, "cannot reach another node");
                DialEnd::Failed
            }
            (Err(LinkFailure::Closed), _) => DialEnd::Failed,
            (Err(LinkFailure::Protocol(text)), _) => super::accepting::end_of_protocol(&text),
        }
    }

    /// Where the peer is dialed; none if that is not known yet.
    fn target(&self, peer: Peer) -> Option<DialTarget> {
        let access = &self.process.access;
        let place = match (peer, &access.coordinator) {
            (Peer::Coordinator, Some(at)) if access.node != access.coordinator_node => {
                MemberPlace::At(at.clone())
            }
            (Peer::Coordinator, _) => MemberPlace::Here,
            (Peer::Callee(member) | Peer::Caller(member), _) => {
                self.process.with(|state| state.member.place_of(member))
            }
        };
        match place {
            MemberPlace::Here => Some(DialTarget::Here),
            MemberPlace::At(at) => Some(DialTarget::There(at)),
            MemberPlace::Unknown => None,
        }
    }

    /// Whether it was open shows in the result: an error came before.
    async fn open_and_carry(
        &self,
        peer: Peer,
        target: &DialTarget,
        purpose: HelloPurpose,
        hello: SessionHello,
    ) -> Result<(), LinkFailure> {
        let link = hello.link;
        let secret = self.process.access.credentials.secret;
        let hello = MemberHello { secret, purpose, hello };
        let dialed = match target {
            DialTarget::Here => dial_here(&self.process.directory, &hello).await?,
            DialTarget::There(at) => dial_there(at, &self.process.tls, &hello).await?,
        };
        let DialedConnection { mut stream, buffer, answer } = dialed;
        let sending = Arc::new(SendBuffer::default());
        if !self.process.with(|state| state.opened(peer, &answer, &sending))? {
            return Err(LinkFailure::Closed);
        }
        if peer == Peer::Coordinator {
            self.process.note_admission();
        }
        let (process, after) = (Arc::clone(&self.process), Rc::clone(&self.after));
        let connection = PeerConnection { process, peer, link, after };
        match carry(&mut stream, buffer, &sending, &connection).await {
            LinkFailure::Broken(_) | LinkFailure::Closed => Ok(()),
            protocol @ LinkFailure::Protocol(_) => Err(protocol),
        }
    }
}

/// Keeps the connection to the coordinator. Returns when the coordinator has ended, with the reason. Whether
/// one on another node has ended, only the head knows: it ends this process then.
pub(crate) async fn keep_coordinator(dialer: &Dialer, role: RunnerRole) -> String {
    let (mut was_open, started, mut pause) = (false, Instant::now(), FIRST_PAUSE);
    let node = dialer.process.access.node.clone();
    loop {
        let purpose = HelloPurpose::Coordinator { role, node: node.clone() };
        match dialer.connect(Peer::Coordinator, purpose).await {
            DialEnd::Broken => (was_open, pause) = (true, FIRST_PAUSE),
            // Its socket is open for as long as the coordinator lives.
            DialEnd::NobodyListens if was_open => {
                return "the coordinator of the application has ended, and with it the application".into();
            }
            DialEnd::NobodyListens if started.elapsed() > COORDINATOR_START => {
                return format!("no coordinator has listened for {COORDINATOR_START:?}");
            }
            DialEnd::NobodyListens | DialEnd::Failed | DialEnd::NotNeeded => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

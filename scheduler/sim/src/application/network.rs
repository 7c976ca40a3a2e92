//! Sessions between processes and their connections, which delay, break and are dialed again.

use std::collections::BTreeMap;

use cohabit_application_core::{LinkNumber, MemberPlace, Packet, Session, SessionHello};
use cohabit_types::{RankId, Span, Time};

use super::event::{AnyFrame, ApplicationEvent, End, LinkContent, Pair};
use super::planted_bug::ApplicationBug;
use super::world::ApplicationWorld;

/// How long something is under way.
const DELAY: (Span, Span) = (Span::from_micros(5), Span::from_millis(40));
/// How long it takes to notice that a connection is gone, and to dial again.
const NOTICE_DELAY: (Span, Span) = (Span::from_micros(10), Span::from_secs(1));

/// The same between nodes.
const FAR_DELAY: (Span, Span) = (Span::from_micros(50), Span::from_millis(150));
/// How long it takes to notice that another node does not answer.
const SILENT_NOTICE: (Span, Span) = (Span::from_secs(3), Span::from_secs(5));
/// How long it takes until it is tried again to reach another node.
const REDIAL: (Span, Span) = (Span::from_millis(100), Span::from_secs(2));

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct SessionNetwork {
    pub(super) channels: BTreeMap<Pair, Channel>,
}

/// Both ends of a session, and its connections.
#[derive(Debug, Default)]
pub(super) struct Channel {
    dialer: Option<Session<AnyFrame>>,
    acceptor: Option<Session<AnyFrame>>,
    /// Frames that the dialing end has sent.
    sent: u64,
    connections: BTreeMap<LinkNumber, Connection>,
    /// Since when the accepting end has no connection, after it had one.
    silent_since: Option<Time>,
}

#[derive(Debug, Default)]
struct Connection {
    broken: bool,
    /// When the last message arrives at the dialer and at the acceptor.
    arrivals: [Time; 2],
}

impl Channel {
    pub(super) const fn end(&mut self, end: End) -> &mut Option<Session<AnyFrame>> {
        match end {
            End::Dialer => &mut self.dialer,
            End::Acceptor => &mut self.acceptor,
        }
    }

    /// Frames that were sent and not acknowledged by an end that lives.
    pub(super) fn unacknowledged(&self) -> usize {
        [&self.dialer, &self.acceptor].into_iter().flatten().map(Session::unacknowledged).sum()
    }

    /// The connections that are not broken.
    pub(super) fn unbroken(&self) -> Vec<LinkNumber> {
        self.connections.iter().filter(|(_, it)| !it.broken).map(|(link, _)| *link).collect()
    }

    pub(super) const fn has_dialer(&self) -> bool {
        self.dialer.is_some()
    }
}

impl ApplicationWorld {
    /// Frames that a process has sent and that are not acknowledged.
    pub(super) fn unacknowledged_of(&self, member: RankId) -> usize {
        let ends = self.network.channels.iter().flat_map(|(pair, channel)| {
            let dialer = channel.dialer.as_ref().filter(|_| pair.dialer == member);
            let acceptor = channel.acceptor.as_ref().filter(|_| pair.acceptor == member);
            [dialer, acceptor].into_iter().flatten()
        });
        ends.map(Session::unacknowledged).sum()
    }

    /// Sends a frame; the dialing end dials at its first frame.
    pub(super) fn send(&mut self, pair: Pair, from: End, frame: AnyFrame) {
        if from == End::Dialer {
            self.make_session(pair);
        }
        let channel = self.network.channels.entry(pair).or_default();
        let Some(session) = channel.end(from) else { return };
        let packet = session.send(frame);
        let link = session.open_link();
        channel.sent += u64::from(from == End::Dialer);
        if let (Some(packet), Some(link)) = (packet, link) {
            self.transmit(pair, link, from.other(), LinkContent::Packet(packet));
        }
    }

    /// Makes the dialing end of a session, which dials soon.
    pub(super) fn make_session(&mut self, pair: Pair) {
        let channel = self.network.channels.entry(pair).or_default();
        if channel.dialer.is_none() {
            channel.dialer = Some(Session::new(pair.dialer, pair.acceptor));
            self.after(DELAY, ApplicationEvent::Dial(pair));
        }
    }

    pub(super) fn dial(&mut self, pair: Pair) {
        let channel = self.network.channels.entry(pair).or_default();
        if channel.dialer.is_none() {
            return;
        }
        if !self.finds_way(pair) {
            let at = self.now + self.nodes.random.span(REDIAL);
            return self.queue.put(at, ApplicationEvent::Dial(pair));
        }
        let channel = self.network.channels.entry(pair).or_default();
        let Some(session) = &mut channel.dialer else { return };
        let hello = session.dial();
        channel.connections.insert(hello.link, Connection::default());
        self.counters.dials += 1;
        self.transmit(pair, hello.link, End::Acceptor, LinkContent::Hello(hello));
    }

    /// Puts something on a connection; what is sent in one direction arrives in order.
    fn transmit(&mut self, pair: Pair, link: LinkNumber, at: End, content: LinkContent) {
        let mut delay = self.random.span(DELAY);
        if self.nodes.of(pair.dialer) != self.nodes.of(pair.acceptor) {
            delay = self.nodes.random.span(FAR_DELAY);
        }
        let now = self.now;
        let channel = self.network.channels.entry(pair).or_default();
        let Some(connection) = channel.connections.get_mut(&link) else { return };
        let last = &mut connection.arrivals[at as usize];
        *last = (now + delay).max(*last);
        let when = *last;
        self.queue.put(when, ApplicationEvent::Deliver { pair, link, at, content });
    }

    pub(super) fn deliver(&mut self, pair: Pair, link: LinkNumber, at: End, content: LinkContent) {
        let Some(channel) = self.network.channels.get_mut(&pair) else { return };
        if channel.connections.get(&link).is_none_or(|it| it.broken) {
            return;
        }
        match (content, at) {
            (LinkContent::Hello(hello), End::Acceptor) => self.accept(pair, &hello),
            (LinkContent::Hello(hello), End::Dialer) => self.open(pair, &hello),
            (LinkContent::Packet(packet), at) => self.receive(pair, link, at, packet),
        }
    }

    fn accept(&mut self, pair: Pair, hello: &SessionHello) {
        if !self.admits(pair) {
            self.break_connection(pair, hello.link);
            return;
        }
        let channel = self.network.channels.entry(pair).or_default();
        let session = channel.acceptor.get_or_insert_with(|| Session::new(pair.acceptor, pair.dialer));
        let mut packets = Vec::new();
        match session.accept(hello, &mut packets) {
            Ok(None) => self.break_connection(pair, hello.link),
            Ok(Some(mut answer)) => {
                if self.plant == Some(ApplicationBug::RepetitionWithoutMemory) && pair.acceptor != self.own {
                    let kept = channel.dialer.as_ref().map_or(0, Session::unacknowledged) as u64;
                    answer.received = channel.sent - kept;
                }
                channel.silent_since = None;
                let older: Vec<LinkNumber> =
                    channel.unbroken().into_iter().filter(|link| *link < hello.link).collect();
                older.into_iter().for_each(|link| self.break_connection(pair, link));
                self.transmit(pair, hello.link, End::Dialer, LinkContent::Hello(answer));
                self.transmit_all(pair, hello.link, End::Dialer, packets);
                self.connected(pair);
            }
            Err(error) => self.ledger.violated(format!("a session broke: {error}")),
        }
    }

    fn open(&mut self, pair: Pair, hello: &SessionHello) {
        let channel = self.network.channels.entry(pair).or_default();
        let Some(session) = &mut channel.dialer else { return };
        let mut packets = Vec::new();
        match session.opened(hello, &mut packets) {
            Ok(()) => self.transmit_all(pair, hello.link, End::Acceptor, packets),
            Err(error) => self.ledger.violated(format!("a session broke: {error}")),
        }
    }

    fn transmit_all(&mut self, pair: Pair, link: LinkNumber, at: End, packets: Vec<Packet<AnyFrame>>) {
        for packet in packets {
            self.transmit(pair, link, at, LinkContent::Packet(packet));
        }
    }

    fn receive(&mut self, pair: Pair, link: LinkNumber, at: End, packet: Packet<AnyFrame>) {
        let repeated = self.repeated(&packet, at);
        let channel = self.network.channels.entry(pair).or_default();
        let Some(session) = channel.end(at).as_mut().filter(|it| it.open_link() == Some(link)) else {
            return;
        };
        match session.receive(link, packet) {
            Ok(frame) => {
                if let Some(frame) = frame.or(repeated) {
                    self.after(DELAY, ApplicationEvent::Acknowledge { pair, at });
                    self.receive_frame(pair, at, frame);
                }
            }
            Err(error) => self.ledger.violated(format!("a session broke: {error}")),
        }
    }

    pub(super) fn acknowledge(&mut self, pair: Pair, at: End) {
        let channel = self.network.channels.entry(pair).or_default();
        let Some(session) = channel.end(at) else { return };
        if let (Some(packet), Some(link)) = (session.acknowledgement(), session.open_link()) {
            self.transmit(pair, link, at.other(), LinkContent::Packet(packet));
        }
    }

    /// A connection breaks; each end notices it in its own time.
    pub(super) fn break_connection(&mut self, pair: Pair, link: LinkNumber) {
        let channel = self.network.channels.entry(pair).or_default();
        if let Some(connection) = channel.connections.get_mut(&link) {
            connection.broken = true;
        }
        let is_far = self.nodes.keep_apart(pair.dialer, pair.acceptor);
        for at in [End::Dialer, End::Acceptor] {
            let notice = ApplicationEvent::Notice { pair, link, at };
            if is_far {
                let at = self.now + self.nodes.random.span(SILENT_NOTICE);
                self.queue.put(at, notice);
            } else {
                self.after(NOTICE_DELAY, notice);
            }
        }
    }

    /// An end notices that a connection is gone; the dialing end dials again.
    pub(super) fn notice(&mut self, pair: Pair, link: LinkNumber, at: End) {
        let channel = self.network.channels.entry(pair).or_default();
        let is_latest = channel.connections.last_key_value().is_some_and(|(latest, _)| *latest == link);
        let Some(session) = channel.end(at) else { return };
        let was_open = session.open_link() == Some(link);
        session.closed(link);
        let is_silent = was_open && at == End::Acceptor && pair.acceptor == self.own;
        if is_silent {
            channel.silent_since = Some(self.now);
            self.watch_silence(pair.dialer, self.now);
        }
        if at == End::Dialer && is_latest {
            self.after(NOTICE_DELAY, ApplicationEvent::Dial(pair));
        }
    }

    /// Since when the coordinator has had no connection of a member.
    pub(super) fn silent_since(&self, member: RankId) -> Option<Time> {
        let channel = self.network.channels.get(&Pair { dialer: member, acceptor: self.own })?;
        channel.acceptor.as_ref().and(channel.silent_since)
    }

    /// Whether the dialing end knows where the other one is, and something listens there.
    fn finds_way(&mut self, pair: Pair) -> bool {
        let (from, to) = (self.nodes.of(pair.dialer), self.nodes.of(pair.acceptor));
        if pair.acceptor == self.own || !self.nodes.are_several() {
            return !self.nodes.are_apart(from, to);
        }
        let Some(place) = self.processes.get(&pair.dialer).map(|it| it.core.place_of(pair.acceptor)) else {
            return true;
        };
        let is_right = match &place {
            MemberPlace::Here => from == to,
            MemberPlace::At(at) => from != to && at.address == to.name(),
            MemberPlace::Unknown => return false,
        };
        if !is_right {
            let Pair { dialer, acceptor } = pair;
            self.ledger.violated(format!("{dialer} of {from:?} takes {acceptor} of {to:?} for {place:?}"));
        }
        let MemberPlace::At(at) = place else { return true };
        let store = self.nodes.store(to);
        let listens = store.is_some_and(|store| self.nodes.address(store) == at);
        listens && !self.nodes.are_apart(from, to)
    }

    /// A process closes its ends of all sessions with another one.
    pub(super) fn close_sessions(&mut self, own: RankId, other: RankId) {
        for (pair, end) in [
            (Pair { dialer: own, acceptor: other }, End::Dialer),
            (Pair { dialer: other, acceptor: own }, End::Acceptor),
        ] {
            let Some(channel) = self.network.channels.get_mut(&pair) else { continue };
            *channel.end(end) = None;
            let links = channel.unbroken();
            links.into_iter().for_each(|link| self.break_connection(pair, link));
        }
    }

    /// A process has died. What it has sent still arrives, and then the other end notices.
    pub(super) fn close_all_sessions(&mut self, member: RankId) {
        let mut notices = Vec::new();
        for (pair, channel) in &mut self.network.channels {
            let is_far = self.nodes.keep_apart(pair.dialer, pair.acceptor);
            let ends = [(pair.dialer, End::Dialer), (pair.acceptor, End::Acceptor)];
            for (_, own) in ends.into_iter().filter(|(process, _)| *process == member) {
                *channel.end(own) = None;
                let is_known = |connection: &&Connection| !(is_far && connection.broken);
                for (link, connection) in channel.connections.iter().filter(|(_, it)| is_known(it)) {
                    let last = connection.arrivals[own.other() as usize].max(self.now);
                    let (pair, link, at) = (*pair, *link, own.other());
                    notices.push((last, ApplicationEvent::Notice { pair, link, at }));
                }
            }
        }
        for (last, notice) in notices {
            let delay = self.random.span(NOTICE_DELAY);
            self.queue.put(last + delay, notice);
        }
    }
}

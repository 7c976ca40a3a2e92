//! Links between workers and the head: calls, greetings, messages, breaks.
//!
//! Only workers call. Each call is a new link with a new key, and the greeting on it says what the worker
//! holds at that moment; an earlier link of the same worker may still look alive to the head.

use cohabit_scheduler_core::Event as HeadEvent;
use cohabit_types::Span;
use cohabit_worker_core::WorkerEvent;

use super::World;
use crate::failure::SimFailure;
use crate::link::{Link, Side};
use crate::node::{Daemon, Link as DaemonLink};
use crate::sim_event::{DaemonSimEvent, LinkId, SimEvent, SimMessage};

/// How long a worker waits before it calls again.
const RECONNECT_DELAY: (Span, Span) = (Span::from_millis(10), Span::from_secs(20));

/// How long a worker waits to be welcomed.
const HANDSHAKE_TIMEOUT: Span = Span::from_secs(20);

/// Until when a side notices that the other has vanished without a word.
const DISCONNECT_NOTICE_DELAY: (Span, Span) = (Span::from_secs(1), Span::from_secs(30));

impl World<'_> {
    pub(super) fn send(&mut self, id: LinkId, message: SimMessage) {
        let delay = self.delays.span(self.settings.delay);
        let arrival =
            self.links.get_mut(id.place()).and_then(|link| link.send(self.now, message.to(), delay));
        if let Some(at) = arrival {
            self.queue.put(at, SimEvent::Arrival(id, message));
        }
    }

    pub(super) fn arrival(&mut self, id: LinkId, message: SimMessage) -> Result<(), SimFailure> {
        let Some(link) = self.links.get_mut(id.place()) else { return Ok(()) };
        if !link.arrives(self.now, message.to()) {
            return Ok(());
        }
        let (node, key) = (link.node, link.key);
        match message {
            SimMessage::Hello(inventory) => {
                self.head.sessions.insert(key, id);
                self.head_event(HeadEvent::Joined(key, *inventory))
            }
            SimMessage::Report(report) => self.head_event(HeadEvent::Report(key, report)),
            SimMessage::HelloAccepted => {
                if let Some(daemon) = &mut self.nodes[node].daemon {
                    daemon.link = DaemonLink::Established(id);
                }
                self.worker_event(node, WorkerEvent::Linked)
            }
            SimMessage::Order(order) => self.worker_event(node, WorkerEvent::Order(order)),
        }
    }

    pub(super) fn dial_soon(&mut self, node: usize) {
        let pause = self.delays.span(RECONNECT_DELAY);
        let dial = SimEvent::Daemon(node, self.nodes[node].life, DaemonSimEvent::Dial);
        self.queue.put(self.now + pause, dial);
    }

    /// Calls the head; what is said on this link travels up to `lag` longer than usual.
    pub(super) fn dial(&mut self, node: usize, lag: Span) -> Result<(), SimFailure> {
        let caller = &mut self.nodes[node];
        let Some(daemon) = caller.daemon.as_mut().filter(|daemon| daemon.link == DaemonLink::None) else {
            return Ok(());
        };
        if !self.head.is_up() || self.now < caller.cut_until {
            self.dial_soon(node);
            return Ok(());
        }
        let id = LinkId(self.links.len() as u64);
        daemon.link = DaemonLink::Handshaking(id);
        let key = caller.next_key();
        let inventory = caller.inventory().expect("its daemon runs");
        let mut link = Link::new(node, key);
        link.hold_up(Side::Head, self.now + self.delays.span((Span::ZERO, lag)));
        self.links.push(link);
        self.send(id, SimMessage::Hello(Box::new(inventory)));
        let give_up = SimEvent::Daemon(node, self.nodes[node].life, DaemonSimEvent::GiveUp(id));
        self.queue.put(self.now + HANDSHAKE_TIMEOUT, give_up);
        Ok(())
    }

    /// A worker that is not welcomed for too long calls again; its greeting may still arrive.
    pub(super) fn give_up(&mut self, node: usize, id: LinkId) -> Result<(), SimFailure> {
        let waits = |daemon: &Daemon| daemon.link == DaemonLink::Handshaking(id);
        if self.nodes[node].daemon.as_ref().is_some_and(waits) {
            self.leave(id);
            return self.link_lost(node);
        }
        Ok(())
    }

    /// A worker hangs up and calls again at once.
    pub(super) fn redial(&mut self, node: usize, times: u32, lag: Span) -> Result<(), SimFailure> {
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        let link = std::mem::replace(&mut daemon.link, DaemonLink::None);
        link.id().into_iter().for_each(|id| self.leave(id));
        if let DaemonLink::Established(_) = link {
            self.worker_event(node, WorkerEvent::Unlinked)?;
        }
        self.dial(node, lag)?;
        if let Some(times) = times.checked_sub(1).filter(|times| *times > 0) {
            let again = SimEvent::Daemon(node, self.nodes[node].life, DaemonSimEvent::Redial { times, lag });
            self.queue.put(self.now + self.delays.span((Span::from_millis(1), lag)), again);
        }
        Ok(())
    }

    /// A worker closes its end in good order: all that it said arrives, and then that it is gone.
    fn leave(&mut self, id: LinkId) {
        let delay = self.delays.span(self.settings.delay);
        let Some(link) = self.links.get_mut(id.place()) else { return };
        if link.close(Side::Worker) {
            self.tally.breaks += 1;
            let until = link.send(self.now, Side::Head, delay).unwrap_or(self.now);
            link.cut(Side::Head, until);
            self.queue.put(until, SimEvent::Broken(id, Side::Head));
        }
    }

    /// One side closes its end. The other hears of it after what still arrives.
    pub(super) fn hang_up(&mut self, id: LinkId, side: Side) {
        let until = self.now + self.breaks.span(self.settings.delay);
        let Some(link) = self.links.get_mut(id.place()) else { return };
        if link.close(side) {
            self.tally.breaks += 1;
            link.cut(side.other(), until);
            self.queue.put(until, SimEvent::Broken(id, side.other()));
        }
    }

    /// One side goes down with its machine. Nobody closes anything: the other notices by and by.
    pub(super) fn vanish(&mut self, id: LinkId, side: Side) {
        let until = self.now + self.breaks.span(self.settings.delay);
        let Some(link) = self.links.get_mut(id.place()) else { return };
        if link.close(side) {
            self.tally.breaks += 1;
            link.cut(side.other(), until);
            let notices = self.breaks.span(DISCONNECT_NOTICE_DELAY);
            self.queue.put(until + notices, SimEvent::Broken(id, side.other()));
        }
    }

    /// The connection itself breaks; each side notices in its own time.
    pub(super) fn tear(&mut self, id: LinkId, head_notices: Span, worker_notices: Span) {
        self.tally.breaks += 1;
        for (side, notices) in [(Side::Head, head_notices), (Side::Worker, worker_notices)] {
            let until = self.now + self.breaks.span(self.settings.delay);
            if let Some(link) = self.links.get_mut(id.place()) {
                link.cut(side, until);
            }
            self.queue.put(until.max(self.now + notices), SimEvent::Broken(id, side));
        }
    }

    pub(super) fn broken(&mut self, id: LinkId, side: Side) -> Result<(), SimFailure> {
        let Some(link) = self.links.get_mut(id.place()) else { return Ok(()) };
        if !link.close(side) {
            return Ok(());
        }
        let (node, key) = (link.node, link.key);
        match side {
            Side::Head if self.head.sessions.remove(&key).is_some() => {
                self.head_event(HeadEvent::Lost(key, "the link broke".into()))
            }
            Side::Head => Ok(()),
            Side::Worker => self.link_lost(node),
        }
    }

    fn link_lost(&mut self, node: usize) -> Result<(), SimFailure> {
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        let link = std::mem::replace(&mut daemon.link, DaemonLink::None);
        if let DaemonLink::Established(_) = link {
            self.worker_event(node, WorkerEvent::Unlinked)?;
        }
        self.dial_soon(node);
        Ok(())
    }
}

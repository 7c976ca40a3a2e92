//! Links between workers and the head: dialling, hellos, messages, breaks.
//!
//! Only workers dial. Each dial is a new link with a new key, and its hello reports what the worker holds at
//! that moment. An earlier link of the same worker may still look alive to the head.

use cohabit_scheduler_core::Event as HeadEvent;
use cohabit_types::Span;
use cohabit_worker_core::WorkerEvent;

use super::World;
use crate::failure::SimFailure;
use crate::link::{Side, SimLink};
use crate::machine::Outbox;
use crate::node::{Daemon, DaemonLink};
use crate::planted_bug::PlantedBug;
use crate::sim_event::{DaemonSimEvent, LinkId, SimEvent, SimMessage};

/// How long a worker waits before it dials again.
const RECONNECT_DELAY: (Span, Span) = (Span::from_millis(10), Span::from_secs(20));

/// How long a worker waits for its hello to be accepted.
const HANDSHAKE_TIMEOUT: Span = Span::from_secs(20);

/// After how long a side notices that the other has disappeared without closing the link.
const DISCONNECT_NOTICE_DELAY: (Span, Span) = (Span::from_secs(1), Span::from_secs(30));

impl World<'_> {
    /// Sends a message over a link; it is lost if the link is broken.
    pub(super) fn send(&mut self, id: LinkId, message: SimMessage) {
        let delay = self.delays.span(self.settings.delay);
        let arrival =
            self.links.get_mut(id.place()).and_then(|link| link.send(self.now, message.to(), delay));
        if let Some(at) = arrival {
            self.queue.put(at, SimEvent::Arrival(id, message));
        }
    }

    /// Delivers a message at its end of a link, if this end is still open.
    pub(super) fn handle_arrival(&mut self, id: LinkId, message: SimMessage) -> Result<(), SimFailure> {
        let Some(link) = self.links.get_mut(id.place()) else { return Ok(()) };
        if !link.arrives(self.now, message.to()) {
            return Ok(());
        }
        self.deliver(id, message)
    }

    /// Delivers a message that has arrived.
    pub(super) fn deliver(&mut self, id: LinkId, message: SimMessage) -> Result<(), SimFailure> {
        let Some(link) = self.links.get(id.place()) else { return Ok(()) };
        let (node, key, dialled_at) = (link.node, link.key, link.dialled_at);
        match message {
            SimMessage::Hello(inventory) => {
                self.head.sessions.insert(key, id);
                self.head_event(HeadEvent::Joined(key, *inventory))?;
                self.welcome_in_outage();
                Ok(())
            }
            SimMessage::Report(report) => self.head_event(HeadEvent::Report(key, report)),
            SimMessage::HelloAccepted => {
                if let Some(daemon) = &mut self.nodes[node].daemon {
                    daemon.link = DaemonLink::Established(id);
                }
                match self.reaches_head(id) {
                    true => self.nodes[node].machine.gain_contact(),
                    false => self.nodes[node].machine.last_contact(dialled_at),
                }
                self.worker_event(node, WorkerEvent::Linked)
            }
            SimMessage::Order(order) => self.worker_event(node, WorkerEvent::Order(order)),
        }
    }

    /// Lets a worker dial after a random pause.
    pub(super) fn schedule_dial(&mut self, node: usize) {
        let pause = self.delays.span(RECONNECT_DELAY);
        let dial = SimEvent::Daemon(node, self.nodes[node].generation, DaemonSimEvent::Dial);
        self.queue.put(self.now + pause, dial);
    }

    /// Dials the head. Messages on this link may be delayed by up to `lag` more than usual.
    pub(super) fn dial(&mut self, node: usize, lag: Span) -> Result<(), SimFailure> {
        let caller = &mut self.nodes[node];
        let Some(daemon) = caller.daemon.as_mut().filter(|daemon| daemon.link == DaemonLink::None) else {
            return Ok(());
        };
        let needs_disk =
            self.plant == Some(PlantedBug::LinkNeedsDisk) && caller.machine.has_full_disk(self.now);
        if !self.head.is_up() || self.now < caller.cut_until || needs_disk {
            self.schedule_dial(node);
            return Ok(());
        }
        let id = LinkId(self.links.len() as u64);
        daemon.link = DaemonLink::Handshaking(id);
        let key = caller.next_key();
        let inventory = caller.inventory().expect("its daemon runs");
        let mut link = SimLink::new(node, key, self.now);
        link.hold_up(Side::Head, self.now + self.delays.span((Span::ZERO, lag)));
        self.links.push(link);
        self.send(id, SimMessage::Hello(Box::new(inventory)));
        let give_up = SimEvent::Daemon(node, self.nodes[node].generation, DaemonSimEvent::GiveUp(id));
        self.queue.put(self.now + HANDSHAKE_TIMEOUT, give_up);
        Ok(())
    }

    /// Gives up a link whose hello was not accepted in time, and dials again; the hello may still arrive.
    pub(super) fn abandon_handshake(&mut self, node: usize, id: LinkId) -> Result<(), SimFailure> {
        let waits = |daemon: &Daemon| daemon.link == DaemonLink::Handshaking(id);
        if self.nodes[node].daemon.as_ref().is_some_and(waits) {
            self.close_link_gracefully(id);
            return self.link_lost(node);
        }
        Ok(())
    }

    /// Closes the link of a worker and dials again at once.
    pub(super) fn redial(&mut self, node: usize, times: u32, lag: Span) -> Result<(), SimFailure> {
        self.nodes[node].noticed_at = self.now + lag;
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        let link = std::mem::replace(&mut daemon.link, DaemonLink::None);
        link.id().into_iter().for_each(|id| self.close_link_gracefully(id));
        if let DaemonLink::Established(_) = link {
            self.worker_event(node, WorkerEvent::Unlinked)?;
        }
        self.dial(node, lag)?;
        if let Some(times) = times.checked_sub(1).filter(|times| *times > 0) {
            let again =
                SimEvent::Daemon(node, self.nodes[node].generation, DaemonSimEvent::Redial { times, lag });
            self.queue.put(self.now + self.delays.span((Span::from_millis(1), lag)), again);
        }
        Ok(())
    }

    /// Closes a link in good order: everything that the worker sent arrives, then the end of the stream.
    fn close_link_gracefully(&mut self, id: LinkId) {
        let delay = self.delays.span(self.settings.delay);
        let Some(link) = self.links.get_mut(id.place()) else { return };
        if link.close(Side::Worker) {
            self.counters.breaks += 1;
            let until = link.send(self.now, Side::Head, delay).unwrap_or(self.now);
            link.cut(Side::Head, until);
            self.queue.put(until, SimEvent::Broken(id, Side::Head));
            self.lose_contact(id);
        }
    }

    /// Closes one end. The other side notices after the messages that still arrive.
    pub(super) fn close_link(&mut self, id: LinkId, side: Side) {
        let until = self.now + self.breaks.span(self.settings.delay);
        let Some(link) = self.links.get_mut(id.place()) else { return };
        if link.close(side) {
            self.counters.breaks += 1;
            link.cut(side.other(), until);
            self.queue.put(until, SimEvent::Broken(id, side.other()));
            self.lose_contact(id);
        }
    }

    /// Drops one end with its machine. Nothing is closed, so the other side notices later.
    pub(super) fn drop_link(&mut self, id: LinkId, side: Side) {
        let until = self.now + self.breaks.span(self.settings.delay);
        let Some(link) = self.links.get_mut(id.place()) else { return };
        if link.close(side) {
            self.counters.breaks += 1;
            link.cut(side.other(), until);
            let notices = self.breaks.span(DISCONNECT_NOTICE_DELAY);
            self.queue.put(until + notices, SimEvent::Broken(id, side.other()));
            self.lose_contact(id);
        }
    }

    /// Breaks the connection itself; each side notices in its own time.
    pub(super) fn break_link(&mut self, id: LinkId, head_notices: Span, worker_notices: Span) {
        self.counters.breaks += 1;
        for (side, notices) in [(Side::Head, head_notices), (Side::Worker, worker_notices)] {
            let until = self.now + self.breaks.span(self.settings.delay);
            if let Some(link) = self.links.get_mut(id.place()) {
                link.cut(side, until);
            }
            self.queue.put(until.max(self.now + notices), SimEvent::Broken(id, side));
        }
        self.lose_contact(id);
    }

    /// Closes an end of a broken link; the head loses the session, or the worker dials again.
    pub(super) fn handle_link_break(&mut self, id: LinkId, side: Side) -> Result<(), SimFailure> {
        let Some(link) = self.links.get_mut(id.place()) else { return Ok(()) };
        if !link.close(side) {
            return Ok(());
        }
        self.lose_contact(id);
        let link = &self.links[id.place()];
        let (node, key) = (link.node, link.key);
        match side {
            Side::Head if self.head.sessions.remove(&key).is_some() => {
                self.head_event(HeadEvent::Lost(key, "the link broke".into()))
            }
            Side::Head => Ok(()),
            Side::Worker => self.link_lost(node),
        }
    }

    /// The head cannot be reached over this link any more.
    fn lose_contact(&mut self, id: LinkId) {
        let node = self.links[id.place()].node;
        let current = self.nodes[node].daemon.as_ref().and_then(|daemon| daemon.link.id());
        if current.is_none_or(|current| current == id) {
            let mut out = Outbox::default();
            self.nodes[node].machine.lose_contact(self.now, &mut out);
            self.set_machine_timers(node, out.timers);
        }
    }

    fn link_lost(&mut self, node: usize) -> Result<(), SimFailure> {
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        let link = std::mem::replace(&mut daemon.link, DaemonLink::None);
        if let DaemonLink::Established(_) = link {
            self.nodes[node].noticed_at = self.nodes[node].noticed_at.max(self.now);
            self.worker_event(node, WorkerEvent::Unlinked)?;
        }
        self.schedule_dial(node);
        Ok(())
    }
}

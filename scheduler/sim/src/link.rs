//! A connection between a worker and the head: two streams, each in order, as TCP guarantees.
//!
//! Messages sent before a break may or may not arrive; messages sent afterwards never do. Nothing is
//! retransmitted here: both sides repeat what matters over their next link.

use cohabit_types::{Span, Time, WorkerKey};

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Head,
    Worker,
}

impl Side {
    pub(crate) const fn other(self) -> Side {
        match self {
            Side::Head => Side::Worker,
            Side::Worker => Side::Head,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct SimLink {
    pub(crate) node: usize,
    pub(crate) key: WorkerKey,
    pub(crate) dialled_at: Time,
    to_head: Stream,
    to_worker: Stream,
}

/// The messages that flow to one side.
#[derive(Debug)]
struct Stream {
    last_arrival: Time,
    /// Nothing arrives later than this.
    breaks_at: Time,
    /// Whether the receiver's end is open.
    is_open: bool,
}

impl Stream {
    const fn new() -> Stream {
        Stream { last_arrival: Time::EPOCH, breaks_at: Time::NEVER, is_open: true }
    }
}

impl SimLink {
    pub(crate) const fn new(node: usize, key: WorkerKey, dialled_at: Time) -> SimLink {
        SimLink { node, key, dialled_at, to_head: Stream::new(), to_worker: Stream::new() }
    }

    const fn towards(&mut self, side: Side) -> &mut Stream {
        match side {
            Side::Head => &mut self.to_head,
            Side::Worker => &mut self.to_worker,
        }
    }

    /// When a message sent now arrives; `None` after a break.
    pub(crate) fn send(&mut self, now: Time, to: Side, delay: Span) -> Option<Time> {
        let stream = self.towards(to);
        if stream.breaks_at != Time::NEVER {
            return None;
        }
        stream.last_arrival = stream.last_arrival.max(now + delay);
        Some(stream.last_arrival)
    }

    /// Delays everything sent to this side so that it arrives no earlier than `until`.
    pub(crate) fn hold_up(&mut self, to: Side, until: Time) {
        let stream = self.towards(to);
        stream.last_arrival = stream.last_arrival.max(until);
    }

    /// Whether a message that is due at this side now arrives.
    pub(crate) fn arrives(&mut self, now: Time, at: Side) -> bool {
        let stream = self.towards(at);
        stream.is_open && now <= stream.breaks_at
    }

    /// Whether both sides reach each other.
    pub(crate) fn is_whole(&self) -> bool {
        [&self.to_head, &self.to_worker].iter().all(|it| it.is_open && it.breaks_at == Time::NEVER)
    }

    /// Whether the end of this side is open.
    pub(crate) fn is_open(&mut self, side: Side) -> bool {
        self.towards(side).is_open
    }

    /// Breaks the stream to this side: messages that would arrive after `until` are lost.
    pub(crate) fn cut(&mut self, to: Side, until: Time) {
        let stream = self.towards(to);
        stream.breaks_at = stream.breaks_at.min(until);
    }

    /// Closes the end of this side and returns whether it was open.
    pub(crate) fn close(&mut self, side: Side) -> bool {
        std::mem::replace(&mut self.towards(side).is_open, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohabit_types::{Incarnation, NodeId};

    fn at(millis: u64) -> Time {
        Time::EPOCH + Span::from_millis(millis)
    }

    fn link() -> SimLink {
        SimLink::new(0, WorkerKey { node: NodeId(uuid::Uuid::nil()), incarnation: Incarnation(1) }, at(0))
    }

    #[test]
    fn a_fast_message_does_not_overtake_a_slow_one() {
        let mut link = link();
        assert_eq!(link.send(at(0), Side::Head, Span::from_millis(50)), Some(at(50)));
        assert_eq!(link.send(at(1), Side::Head, Span::from_millis(2)), Some(at(50)));
        assert_eq!(link.send(at(1), Side::Worker, Span::from_millis(2)), Some(at(3)));
    }

    #[test]
    fn a_break_loses_late_messages_and_all_later_ones() {
        let mut link = link();
        link.cut(Side::Head, at(20));
        assert!(link.arrives(at(20), Side::Head) && !link.arrives(at(21), Side::Head));
        assert_eq!(link.send(at(5), Side::Head, Span::ZERO), None);
        assert!(link.send(at(5), Side::Worker, Span::ZERO).is_some());
    }

    #[test]
    fn nothing_arrives_at_a_closed_end() {
        let mut link = link();
        assert!(link.close(Side::Worker));
        assert!(!link.close(Side::Worker));
        assert!(!link.arrives(at(0), Side::Worker) && link.arrives(at(0), Side::Head));
    }
}

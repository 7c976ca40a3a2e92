//! The head's journal in the simulated cluster: events become durable in batches, sooner or later, or not.
//!
//! What comes while one batch is being written waits for the next. Nothing is handled before it is durable,
//! and a crash may come between the two.

use std::collections::VecDeque;

use cohabit_scheduler_core::Event;
use cohabit_types::{Report, Span, Time};

/// Events on their way into the head.
#[derive(Debug, Default)]
pub(crate) struct SimJournal {
    /// What is durable.
    durable: Vec<(Time, Event)>,
    /// So many of those were handled.
    handled: usize,
    /// What is being written now; in one piece, or not at all.
    writing: VecDeque<(Time, Event)>,
    /// What waits until that is done.
    waiting: VecDeque<Event>,
    /// How far the head's clock has leapt since it last looked at it.
    leapt: Span,
    slow_until: Time,
    slow_commit: Span,
    full_until: Time,
}

impl SimJournal {
    /// Something happened.
    pub(crate) fn add(&mut self, event: Event) {
        self.waiting.push_back(event);
    }

    /// Each batch takes so long for a while.
    pub(crate) const fn slow(&mut self, until: Time, commit: Span) {
        (self.slow_until, self.slow_commit) = (until, commit);
    }

    /// No batch can be written for a while.
    pub(crate) const fn fill(&mut self, until: Time) {
        self.full_until = until;
    }

    /// All is well again.
    pub(crate) const fn heal(&mut self) {
        (self.slow_until, self.full_until) = (Time::EPOCH, Time::EPOCH);
    }

    /// The head's clock has leapt: it says so ahead of the first event that it stamps afterwards.
    pub(crate) fn leap(&mut self, forward: Span) {
        self.leapt = self.leapt + forward;
    }

    /// Begins to write what waits, unless it writes already; answers whether it did.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        let begins = self.writing.is_empty() && !self.waiting.is_empty();
        if begins {
            let leapt = Some(std::mem::take(&mut self.leapt)).filter(|leapt| *leapt > Span::ZERO);
            self.writing.extend(leapt.map(|leapt| (now, Event::ClockSet(leapt))));
            self.writing.extend(self.waiting.drain(..).map(|event| (now, event)));
        }
        begins
    }

    /// How long a batch takes that is begun now and usually takes so long.
    pub(crate) fn takes(&self, now: Time, usual: Span) -> Span {
        if now < self.slow_until { self.slow_commit.max(usual) } else { usual }
    }

    /// The batch is written: its events are handed out one by one, or it could not be written.
    pub(crate) fn commit(&mut self, now: Time) -> Result<VecDeque<(Time, Event)>, JournalFull> {
        if now < self.full_until && self.writing.iter().any(|(_, event)| is_journaled(event)) {
            return Err(JournalFull);
        }
        self.durable.extend(self.writing.iter().filter(|(_, event)| is_journaled(event)).cloned());
        Ok(std::mem::take(&mut self.writing))
    }

    /// Nobody shall wait for room: takes the requests of clients out of the batch. All else stays in it.
    pub(crate) fn refuse(&mut self) -> Vec<Event> {
        let (requests, rest): (VecDeque<_>, VecDeque<_>) =
            self.writing.drain(..).partition(|(_, event)| matches!(event, Event::Client(..)));
        self.writing = rest;
        requests.into_iter().map(|(_, event)| event).collect()
    }

    /// Whether a batch is still to be written.
    pub(crate) fn is_writing(&self) -> bool {
        !self.writing.is_empty()
    }

    /// The next event is about to be handled.
    pub(crate) fn handles(&mut self, event: &Event) {
        self.handled += usize::from(is_journaled(event));
    }

    /// The head is gone, and with it all that is not durable; of a batch that was being written nobody knows
    /// whether it is.
    pub(crate) fn crash(&mut self, fate: WriteOutcome) {
        match fate {
            WriteOutcome::Written => {
                self.durable.extend(self.writing.drain(..).filter(|(_, it)| is_journaled(it)))
            }
            WriteOutcome::Lost => self.writing.clear(),
        }
        self.waiting.clear();
        self.leapt = Span::ZERO;
    }

    /// When the last event happened that is durable.
    pub(crate) fn last(&self) -> Option<Time> {
        self.durable.last().map(|(at, _)| *at)
    }

    /// Everything durable that was handled.
    pub(crate) fn handled(&self) -> &[(Time, Event)] {
        &self.durable[..self.handled]
    }

    /// What is durable, and was not handled when the head died: it is handled now.
    pub(crate) fn take_unhandled(&mut self) -> Vec<(Time, Event)> {
        let unhandled = self.durable[self.handled..].to_vec();
        self.handled = self.durable.len();
        unhandled
    }
}

/// There is no room for the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalFull;

/// What became of a batch that was being written when the head died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    Written,
    Lost,
}

/// Whether an event has to be durable; the next report brings others again.
const fn is_journaled(event: &Event) -> bool {
    !matches!(event, Event::Report(_, Report::Progress(_) | Report::Telemetry(_) | Report::Stretches(_)))
}

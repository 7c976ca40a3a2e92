//! The head's journal in the simulated cluster: events become durable in batches, unless a crash comes first.
//!
//! Events that arrive while a batch is being written wait for the next one. No event is handled before it is
//! durable, and a crash may come between the two. Durable entries are kept as the text that the head's
//! journal would hold, so every recovery also decodes what was encoded.

use std::collections::VecDeque;

use cohabit_journal::{decode_event, encode_event, is_journaled};
use cohabit_scheduler_core::Event;
use cohabit_types::{Span, Time, WorkerKey};

/// A durable event, as the journal holds it.
#[derive(Debug)]
pub(crate) struct DurableEntry {
    at: Time,
    text: String,
}

impl DurableEntry {
    fn encode(entry: &(Time, Event)) -> DurableEntry {
        let (at, event) = entry;
        DurableEntry { at: *at, text: encode_event(event).expect("a journaled event has a JSON form") }
    }

    /// The event and its time.
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub(crate) fn decode(&self) -> Result<(Time, Event), String> {
        let event = decode_event(cohabit_journal::FORMAT, &self.text);
        event.map(|event| (self.at, event)).map_err(|error| format!("cannot read {}: {error}", self.text))
    }
}

/// Events on their way into the head.
#[derive(Debug, Default)]
pub(crate) struct SimJournal {
    durable: Vec<DurableEntry>,
    /// How many of the durable events were handled.
    handled: usize,
    /// The batch that is being written, all of it or none.
    writing: VecDeque<(Time, Event)>,
    /// Events that wait for the next batch, with the times at which they happened.
    waiting: VecDeque<(Time, Event)>,
    /// How far the head's clock has jumped since its last event.
    leapt: Span,
    slow_until: Time,
    slow_commit: Span,
    full_until: Time,
    /// Whether the last batch could not be written.
    is_failing: bool,
}

impl SimJournal {
    /// Takes in an event. If the clock has jumped since the last one, an event that says so comes first.
    pub(crate) fn add(&mut self, now: Time, event: Event) {
        let leapt = Some(std::mem::take(&mut self.leapt)).filter(|leapt| *leapt > Span::ZERO);
        self.waiting.extend(leapt.map(|leapt| (now, Event::ClockSet(leapt))));
        self.waiting.push_back((now, event));
    }

    /// Until then, each batch takes this long.
    pub(crate) const fn slow(&mut self, until: Time, commit: Span) {
        (self.slow_until, self.slow_commit) = (until, commit);
    }

    /// Until then, no batch can be written.
    pub(crate) const fn fill(&mut self, until: Time) {
        self.full_until = until;
    }

    /// Ends all faults.
    pub(crate) const fn heal(&mut self) {
        (self.slow_until, self.full_until) = (Time::EPOCH, Time::EPOCH);
    }

    /// Notes a jump of the head's clock. It becomes an event before the next one.
    pub(crate) fn leap(&mut self, forward: Span) {
        self.leapt = self.leapt + forward;
    }

    /// Starts a batch of the waiting events, unless one is being written. Returns whether it did.
    pub(crate) fn begin(&mut self) -> bool {
        let begins = self.writing.is_empty() && !self.waiting.is_empty();
        if begins {
            self.writing.extend(self.waiting.drain(..));
        }
        begins
    }

    /// How long a batch takes that starts now and usually takes `usual`.
    pub(crate) fn takes(&self, now: Time, usual: Span) -> Span {
        if now < self.slow_until { self.slow_commit.max(usual) } else { usual }
    }

    /// Ends the batch: returns its events, or that there is no room for it.
    pub(crate) fn commit(&mut self, now: Time) -> Result<VecDeque<(Time, Event)>, JournalFull> {
        if now < self.full_until && self.writing.iter().any(|(_, event)| is_journaled(event)) {
            self.is_failing = true;
            return Err(JournalFull);
        }
        self.is_failing = false;
        self.keep();
        Ok(std::mem::take(&mut self.writing))
    }

    /// Takes the requests of clients out of the batch: they are refused while there is no room.
    pub(crate) fn refuse(&mut self) -> Vec<Event> {
        let (requests, rest): (VecDeque<_>, VecDeque<_>) =
            self.writing.drain(..).partition(|(_, event)| matches!(event, Event::Client(..)));
        self.writing = rest;
        requests.into_iter().map(|(_, event)| event).collect()
    }

    /// The workers whose joins cannot be written.
    pub(crate) fn unwritten_joins(&self) -> Vec<WorkerKey> {
        let events = self.writing.iter().chain(&self.waiting).map(|(_, event)| event);
        let events = events.filter(|_| self.is_failing);
        events.filter_map(|event| if let Event::Joined(key, _) = event { Some(*key) } else { None }).collect()
    }

    /// Until when batches take long, and how long they do.
    pub(crate) const fn slow_times(&self) -> (Time, Span) {
        (self.slow_until, self.slow_commit)
    }

    /// Whether a batch is being written.
    pub(crate) fn is_writing(&self) -> bool {
        !self.writing.is_empty()
    }

    /// Notes that the next event is about to be handled.
    pub(crate) fn handles(&mut self, event: &Event) {
        self.handled += usize::from(is_journaled(event));
    }

    /// The head crashes and loses what is not durable. `fate` decides about the batch that was being written.
    pub(crate) fn crash(&mut self, fate: WriteOutcome) {
        match fate {
            WriteOutcome::Written => self.keep(),
            WriteOutcome::Lost => {}
        }
        self.writing.clear();
        self.waiting.clear();
        self.leapt = Span::ZERO;
        self.is_failing = false;
    }

    /// Makes the batch durable.
    fn keep(&mut self) {
        let journaled = self.writing.iter().filter(|(_, event)| is_journaled(event));
        self.durable.extend(journaled.map(DurableEntry::encode));
    }

    /// The time of the last durable event.
    pub(crate) fn last(&self) -> Option<Time> {
        self.durable.last().map(|entry| entry.at)
    }

    /// The durable events that were handled.
    pub(crate) fn handled(&self) -> &[DurableEntry] {
        &self.durable[..self.handled]
    }

    /// The durable events that were not handled before the crash. From now on they count as handled.
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub(crate) fn take_unhandled(&mut self) -> Result<Vec<(Time, Event)>, String> {
        let unhandled = self.durable[self.handled..].iter().map(DurableEntry::decode).collect();
        self.handled = self.durable.len();
        unhandled
    }
}

/// There is no room for the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalFull;

/// The fate of a batch that was being written when the head crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    Written,
    Lost,
}

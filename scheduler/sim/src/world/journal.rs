//! The head's journal in the simulated cluster: batches take their time, and sometimes there is no room.

use cohabit_scheduler_core::Event;
use cohabit_types::{Refusal, RefusalCode, Reply, Span};

use super::World;
use crate::failure::SimFailure;
use crate::journal::JournalFull;
use crate::sim_event::{HeadSimEvent, SimEvent};

/// How long the head waits before it tries again to write a batch for which there was no room.
const RETRY_DELAY: Span = Span::from_secs(1);

impl World<'_> {
    /// Writes what waits; what takes no time is handled at once.
    pub(super) fn write_journal(&mut self) -> Result<(), SimFailure> {
        while self.head.is_up() && self.head.journal.begin(self.head_now()) {
            let usual = self.commits.span(self.settings.commit);
            match self.head.journal.takes(self.now, usual) {
                Span::ZERO => self.commit()?,
                takes => self.written_after(takes),
            }
        }
        Ok(())
    }

    /// The batch has been written, or could not be.
    pub(super) fn journal_written(&mut self) -> Result<(), SimFailure> {
        self.commit()?;
        self.write_journal()
    }

    fn commit(&mut self) -> Result<(), SimFailure> {
        match self.head.journal.commit(self.now) {
            Ok(batch) => {
                for (at, event) in batch {
                    // It may crash over each of them; the others are found in the journal.
                    if self.head.is_up() {
                        self.head_handles(at, event)?;
                    }
                }
            }
            Err(JournalFull) => self.refuse_clients(),
        }
        Ok(())
    }

    /// Clients hear at once that there is no room. All else waits in its order.
    fn refuse_clients(&mut self) {
        for event in self.head.journal.refuse() {
            if let Event::Client(client, ..) = event {
                let refusal = Refusal::new(RefusalCode::Unavailable, "the disk of the journal is full");
                self.schedule_delivery(SimEvent::Reply(client, Reply::Refused(refusal)));
            }
        }
        if self.head.journal.is_writing() {
            self.written_after(RETRY_DELAY);
        }
    }

    fn written_after(&mut self, span: Span) {
        self.queue.put(self.now + span, SimEvent::Head(self.head.generation, HeadSimEvent::Written));
    }
}

//! Drives the head's journal: batches take time, and sometimes there is no room for them.

use cohabit_scheduler_core::Event;
use cohabit_types::{Refusal, RefusalCode, Reply, Span};

use super::World;
use crate::failure::SimFailure;
use crate::journal::JournalFull;
use crate::planted_bug::PlantedBug;
use crate::sim_event::{HeadSimEvent, SimEvent, SimMessage};

/// The pause before the head tries again to write a batch.
const RETRY_DELAY: Span = Span::from_secs(1);

impl World<'_> {
    /// Starts a batch of the waiting events. A batch that takes no time is handled at once.
    pub(super) fn write_journal(&mut self) -> Result<(), SimFailure> {
        while self.head.is_up() && self.head.journal.begin() {
            let usual = self.commits.span(self.settings.commit);
            match self.head.journal.takes(self.now, usual) {
                Span::ZERO => self.commit()?,
                takes => self.written_after(takes),
            }
        }
        Ok(())
    }

    /// The time of the batch is over: it was written, or there was no room for it.
    pub(super) fn journal_written(&mut self) -> Result<(), SimFailure> {
        self.commit()?;
        self.write_journal()
    }

    fn commit(&mut self) -> Result<(), SimFailure> {
        match self.head.journal.commit(self.now) {
            Ok(batch) => {
                for (at, event) in batch {
                    // Any of them may crash the head; recovery finds the others in the journal.
                    if self.head.is_up() {
                        self.head_handles(at, event)?;
                    }
                }
            }
            Err(JournalFull) => {
                self.refuse_clients();
                self.welcome_in_outage();
            }
        }
        Ok(())
    }

    /// Lets workers in whose joins cannot be written: they must not stop their ranks because of that. What
    /// they report waits.
    pub(super) fn welcome_in_outage(&mut self) {
        if self.plant == Some(PlantedBug::WelcomeNeedsJournal) {
            return;
        }
        for key in self.head.journal.unwritten_joins() {
            if let Some(link) =
                self.head.sessions.get(&key).copied().filter(|_| self.head.welcomed.insert(key))
            {
                self.send(link, SimMessage::HelloAccepted);
            }
        }
    }

    /// Refuses the requests of clients at once. Other events keep their order and wait.
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

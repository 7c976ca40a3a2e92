//! A head that continues from a backup: what its predecessor gave out after the backup is never given again.
//!
//! The backup does not know which numbers followed it. A worker may still hold a rank of such a job or
//! attempt, and it must not be taken for another one with the same number. So the numbers of jobs, and those
//! of the next attempts of the jobs in the backup, jump; by how much says the event.

use cohabit_types::JobId;

use crate::head::Head;
use crate::restored_backup::RestoredBackup;
use crate::transition::Transition;

impl Transition<'_> {
    pub(crate) fn backup_restored(&mut self, last_number: u64, attempt_gap: u32) {
        self.forget_prefetched();
        let head = &mut self.head;
        head.last_number = head.last_number.max(last_number);
        let earlier = head.restored_backup.as_ref().map_or(0, |it| it.attempt_gap);
        let attempt_gap = earlier.saturating_add(attempt_gap);
        head.restored_backup = Some(RestoredBackup { at: self.now, attempt_gap });
    }
}

impl Head {
    /// The number of the last submission.
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// The number of the next attempt of a job in memory.
    pub(crate) fn next_attempt(&self, id: JobId) -> u32 {
        let last = self.jobs[&id].last_attempt().map(|it| (it.attempt.number, it.attempt.started_at));
        let (number, since) = last.unwrap_or_else(|| (0, self.submissions[&id.number].submitted_at));
        let restored = self.restored_backup.as_ref().filter(|it| since <= it.at);
        number.saturating_add(restored.map_or(0, |it| it.attempt_gap)).saturating_add(1)
    }
}

//! How jobs enter and leave the queue, and their positions in it.

use cohabit_types::JobId;

use crate::head::Head;

impl Head {
    /// The job only waits for room from now on. Answers whether that is new.
    pub(crate) fn queue_up(&mut self, id: JobId) -> bool {
        let is_new = self.eligible.insert(id);
        if is_new {
            let priority = self.priority(id);
            self.volatile.queue.insert(priority, id);
            self.volatile.waiting_demand.add(&self.submissions, id);
            self.update_user_queue(id.number);
        }
        is_new
    }

    /// The job waits for something else, or no longer waits.
    pub(crate) fn leave_queue(&mut self, id: JobId) {
        if self.eligible.remove(&id) {
            let priority = self.priority(id);
            self.volatile.queue.remove(priority, id);
            self.volatile.waiting_demand.remove(&self.submissions, id);
            self.update_user_queue(id.number);
        }
    }

    /// How many jobs are ahead of this one in the queue.
    pub(crate) fn ahead_of(&self, id: JobId) -> usize {
        self.volatile.queue.ahead_of(self.priority(id), id)
    }

    pub(crate) fn priority(&self, id: JobId) -> i32 {
        self.submissions.get(&id.number).map_or(0, |submission| submission.spec.priority)
    }
}

//! The order of the queue: by priority, then by time of submission.

use std::cmp::Reverse;

use cohabit_types::{JobId, Time};

use crate::head::Head;

/// The eligible jobs in the order of the queue.
#[derive(Debug, Clone)]
pub(crate) struct WaitingQueue(Vec<QueuePosition>);

/// What the position of a job depends on.
type QueuePosition = (Reverse<i32>, Time, JobId);

impl Head {
    /// The job only waits for room from now on. Answers whether that is new.
    pub(crate) fn queue_up(&mut self, id: JobId) -> bool {
        self.volatile.queue.take();
        self.eligible.insert(id)
    }

    /// The job waits for something else, or no longer waits.
    pub(crate) fn leave_queue(&mut self, id: JobId) {
        self.volatile.queue.take();
        self.eligible.remove(&id);
        self.volatile.forecasts.remove(&id);
    }

    /// How many jobs are ahead of this one in the queue.
    pub(crate) fn ahead_of(&self, id: JobId) -> usize {
        let WaitingQueue(places) = self.volatile.queue.get_or_init(|| WaitingQueue::of(self));
        let own = self.queue_position(id);
        places.partition_point(|queue_position| *queue_position < own)
    }

    fn queue_position(&self, id: JobId) -> QueuePosition {
        let submission = &self.submissions[&id.number];
        (Reverse(submission.spec.priority), submission.submitted_at, id)
    }
}

impl WaitingQueue {
    fn of(head: &Head) -> WaitingQueue {
        let mut places: Vec<QueuePosition> = Vec::with_capacity(head.eligible.len());
        for id in &head.eligible {
            // Members of an array differ in nothing but their index.
            let same = places.last().filter(|(.., before)| before.number == id.number);
            let queue_position =
                same.map_or_else(|| head.queue_position(*id), |(priority, at, _)| (*priority, *at, *id));
            places.push(queue_position);
        }
        places.sort_unstable();
        WaitingQueue(places)
    }
}

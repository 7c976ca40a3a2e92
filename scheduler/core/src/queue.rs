//! The order of those that wait, by priority and time of submission: made once for all who ask between two
//! changes.

use std::cmp::Reverse;

use cohabit_types::{JobId, Time};

use crate::head::Head;

/// Those that wait, the first in line first.
#[derive(Debug, Clone)]
pub(crate) struct Queue(Vec<Place>);

/// What a place in line depends on.
type Place = (Reverse<i32>, Time, JobId);

impl Head {
    /// The job waits for nothing but room from now on; whether that is new.
    pub(crate) fn queue_up(&mut self, id: JobId) -> bool {
        self.live.queue.take();
        self.eligible.insert(id)
    }

    /// The job waits for something else, or waits no more.
    pub(crate) fn leave_queue(&mut self, id: JobId) {
        self.live.queue.take();
        self.eligible.remove(&id);
        self.live.expected.remove(&id);
    }

    /// How many jobs stand before this one by priority and time of submission.
    pub(crate) fn ahead_of(&self, id: JobId) -> usize {
        let Queue(places) = self.live.queue.get_or_init(|| Queue::of(self));
        let own = self.place(id);
        places.partition_point(|place| *place < own)
    }

    fn place(&self, id: JobId) -> Place {
        let submission = &self.submissions[&id.number];
        (Reverse(submission.spec.priority), submission.submitted_at, id)
    }
}

impl Queue {
    fn of(head: &Head) -> Queue {
        let mut places: Vec<Place> = Vec::with_capacity(head.eligible.len());
        for id in &head.eligible {
            // Members of an array differ in nothing but their index.
            let same = places.last().filter(|(.., before)| before.number == id.number);
            let place = same.map_or_else(|| head.place(*id), |(priority, at, _)| (*priority, *at, *id));
            places.push(place);
        }
        places.sort_unstable();
        Queue(places)
    }
}

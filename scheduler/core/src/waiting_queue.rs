//! The order of the queue: by priority, then in the order of submission. Numbers of jobs grow with time, so
//! the order of their ids is the order of submission.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_types::JobId;

/// A full chunk is split in two. Short enough that inserting into a chunk moves little memory, long enough
/// that a queue of 100,000 jobs has a few hundred chunks.
const MAX_CHUNK: usize = 512;

/// The eligible jobs, ordered so that the position of each is found quickly.
#[derive(Debug, Default, Clone)]
pub(crate) struct WaitingQueue {
    /// The most urgent priority first.
    by_priority: BTreeMap<Reverse<i32>, SortedJobs>,
}

/// Jobs in ascending order, in chunks of limited length, none of which is empty.
#[derive(Debug, Default, Clone)]
struct SortedJobs {
    chunks: Vec<Vec<JobId>>,
}

impl WaitingQueue {
    pub(crate) fn insert(&mut self, priority: i32, job: JobId) {
        self.by_priority.entry(Reverse(priority)).or_default().insert(job);
    }

    pub(crate) fn remove(&mut self, priority: i32, job: JobId) {
        let Some(jobs) = self.by_priority.get_mut(&Reverse(priority)) else { return };
        jobs.remove(job);
        if jobs.chunks.is_empty() {
            self.by_priority.remove(&Reverse(priority));
        }
    }

    /// How many jobs are ahead of this one.
    pub(crate) fn ahead_of(&self, priority: i32, job: JobId) -> usize {
        let more_urgent: usize =
            self.by_priority.range(..Reverse(priority)).map(|(_, jobs)| jobs.len()).sum();
        more_urgent + self.by_priority.get(&Reverse(priority)).map_or(0, |jobs| jobs.count_before(job))
    }

    /// The jobs with their priorities, the next one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, JobId)> {
        self.by_priority
            .iter()
            .flat_map(|(Reverse(priority), jobs)| jobs.chunks.iter().flatten().map(|job| (*priority, *job)))
    }
}

impl SortedJobs {
    /// The place of the chunk that has, or would have, this job.
    fn chunk_of(&self, job: JobId) -> usize {
        let ends_before = |chunk: &Vec<JobId>| chunk.last().is_some_and(|last| *last < job);
        self.chunks.partition_point(ends_before)
    }

    fn insert(&mut self, job: JobId) {
        let place = self.chunk_of(job).min(self.chunks.len().saturating_sub(1));
        let Some(chunk) = self.chunks.get_mut(place) else {
            self.chunks.push(vec![job]);
            return;
        };
        if let Err(position) = chunk.binary_search(&job) {
            chunk.insert(position, job);
        }
        if chunk.len() > MAX_CHUNK {
            // Jobs mostly come in ascending order: a chunk that grew at its end stays full.
            let at = if chunk.last() == Some(&job) { MAX_CHUNK } else { chunk.len() / 2 };
            let rest = chunk.split_off(at);
            self.chunks.insert(place + 1, rest);
        }
    }

    fn remove(&mut self, job: JobId) {
        let place = self.chunk_of(job);
        let Some(chunk) = self.chunks.get_mut(place) else { return };
        if let Ok(position) = chunk.binary_search(&job) {
            chunk.remove(position);
        }
        if chunk.is_empty() {
            self.chunks.remove(place);
        }
    }

    fn count_before(&self, job: JobId) -> usize {
        let place = self.chunk_of(job);
        let earlier: usize = self.chunks[..place].iter().map(Vec::len).sum();
        earlier + self.chunks.get(place).map_or(0, |chunk| chunk.partition_point(|other| *other < job))
    }

    fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a plain sorted list, through every way in which chunks are filled, split and emptied.
    #[test]
    fn positions_are_those_in_a_sorted_list() {
        let mut queue = WaitingQueue::default();
        let mut list: Vec<(Reverse<i32>, JobId)> = Vec::new();
        // Steps through the numbers below 2,003 in an order that is neither ascending nor descending.
        for step in 0..2_003_u64 {
            let (number, priority) = (step * 787 % 2_003, i32::try_from(step % 3).unwrap());
            queue.insert(priority, JobId::new(number));
            list.push((Reverse(priority), JobId::new(number)));
        }
        list.sort_unstable();
        while !list.is_empty() {
            let jobs = queue.iter().map(|(priority, job)| (Reverse(priority), job));
            assert!(jobs.eq(list.iter().copied()));
            for (place, (Reverse(priority), job)) in list.iter().enumerate().step_by(97) {
                assert_eq!(queue.ahead_of(*priority, *job), place);
            }
            let removed: Vec<_> = list.iter().copied().step_by(3).collect();
            removed.iter().for_each(|(Reverse(priority), job)| queue.remove(*priority, *job));
            list.retain(|it| !removed.contains(it));
        }
        assert!(queue.by_priority.is_empty());
    }

    #[test]
    fn jobs_that_come_in_order_fill_their_chunks() {
        let mut queue = WaitingQueue::default();
        (0..10 * MAX_CHUNK as u64).for_each(|number| queue.insert(0, JobId::new(number)));
        assert_eq!(queue.by_priority[&Reverse(0)].chunks.len(), 10);
    }
}

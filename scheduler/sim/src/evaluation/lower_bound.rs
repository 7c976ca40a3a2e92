//! A lower bound on the mean completion time: one machine that always serves the shortest remaining work.
//!
//! A cluster of G devices is replaced by one machine with the speed of G, on which each job needs its work at
//! the fastest conceivable placement. Serving the shortest remaining work preemptively minimises the sum of
//! completion times there (Schrage's theorem), and any schedule of the cluster can be replayed on it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cohabit_types::{Span, Time};

/// A job of that machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleMachineJob {
    /// Arrival time.
    pub(super) at: Time,
    /// Service time on the whole machine.
    pub(super) length: Span,
}

/// Mean time from arrival to completion, in seconds. The jobs are ordered by arrival.
pub(super) fn mean_completion(jobs: &[SingleMachineJob]) -> f64 {
    let mut waiting: BinaryHeap<Reverse<(Span, usize)>> = BinaryHeap::new();
    let mut arrivals = jobs.iter().enumerate().peekable();
    let (mut now, mut total) = (Time::EPOCH, 0.0);
    loop {
        while let Some((index, job)) = arrivals.next_if(|(_, job)| job.at <= now) {
            waiting.push(Reverse((job.length, index)));
        }
        let next = arrivals.peek().map(|(_, job)| job.at);
        match (waiting.pop(), next) {
            (None, None) => return total / jobs.len().max(1) as f64,
            (None, Some(arrival)) => now = arrival,
            (Some(Reverse((rest, index))), Some(arrival)) if now + rest > arrival => {
                waiting.push(Reverse((rest - arrival.since(now), index)));
                now = arrival;
            }
            (Some(Reverse((rest, index))), _) => {
                now += rest;
                total += now.since(jobs[index].at).as_secs_f64();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(at: u64, millis: u64) -> SingleMachineJob {
        SingleMachineJob { at: Time::EPOCH + Span::from_secs(at), length: Span::from_millis(millis) }
    }

    #[test]
    fn the_shortest_remaining_work_is_served() {
        // Ends at 6.5, 3.5 and 2.5 seconds.
        let mean = mean_completion(&[work(0, 4_000), work(1, 2_000), work(2, 500)]);
        assert!((mean - (6.5 + 2.5 + 0.5) / 3.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn the_machine_idles_until_the_next_arrival() {
        assert!((mean_completion(&[work(10, 1_000), work(100, 3_000)]) - 2.0).abs() < 1e-9);
        assert_eq!(mean_completion(&[]), 0.0);
    }
}

//! What no schedule can beat: the single machine on which the shortest remaining work is always served.
//!
//! A cluster of G devices is replaced by one machine that does the work of G, each job by its work on its
//! fastest thinkable place. Serving the shortest rest, preemptively, minimises the sum of completion times
//! there (Schrage), and any schedule of the cluster can be replayed on it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cohabit_types::{Span, Time};

/// A job of that machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleMachineJob {
    /// When it arrives.
    pub(super) at: Time,
    /// How long the whole machine works on it.
    pub(super) length: Span,
}

/// Mean time from arrival to end, in seconds. The jobs come in the order of their arrival.
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
    fn the_shortest_rest_is_always_served() {
        // Ends at 6.5, 3.5 and 2.5 seconds.
        let mean = mean_completion(&[work(0, 4_000), work(1, 2_000), work(2, 500)]);
        assert!((mean - (6.5 + 2.5 + 0.5) / 3.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn it_waits_for_those_who_come_late() {
        assert!((mean_completion(&[work(10, 1_000), work(100, 3_000)]) - 2.0).abs() < 1e-9);
        assert_eq!(mean_completion(&[]), 0.0);
    }
}

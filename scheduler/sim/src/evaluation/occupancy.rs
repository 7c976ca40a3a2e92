//! For how long devices had at least one job.

use std::collections::BTreeMap;

use cohabit_types::{DeviceId, JobRecord, Span, Time};

/// The spans for which jobs held each device.
#[derive(Default)]
pub(super) struct Occupancy {
    held: BTreeMap<DeviceId, Vec<(Time, Time)>>,
}

impl Occupancy {
    /// Records an ended job.
    pub(super) fn note(&mut self, record: &JobRecord) {
        for attempt in &record.attempts {
            let span = (attempt.started_at, attempt.ended_at.unwrap_or(attempt.started_at));
            for device in attempt.ranks.iter().flat_map(|rank| &rank.devices) {
                match self.held.get_mut(device) {
                    Some(spans) => spans.push(span),
                    None => _ = self.held.insert(device.clone(), vec![span]),
                }
            }
        }
    }

    /// The sum over all devices.
    pub(super) fn total(self) -> Span {
        self.held.into_values().map(covered).fold(Span::ZERO, |sum, covered| sum + covered)
    }
}

/// The length of the union of the spans.
fn covered(mut spans: Vec<(Time, Time)>) -> Span {
    spans.sort_unstable();
    let mut covered = Span::ZERO;
    let mut until = Time::EPOCH;
    for (from, to) in spans {
        covered = covered + to.since(from.max(until));
        until = until.max(to);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_with_several_jobs_counts_once() {
        let at = |secs| Time::EPOCH + Span::from_secs(secs);
        let spans =
            vec![(at(30), at(40)), (at(0), at(10)), (at(2), at(5)), (at(8), at(12)), (at(40), at(41))];
        assert_eq!(covered(spans), Span::from_secs(12 + 11));
    }
}

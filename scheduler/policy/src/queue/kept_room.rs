//! Room that is kept for the next in line.
//!
//! Where users take turns, many narrow jobs of others may pass a wide job for ever. So the first job on
//! several devices, in the order of turns, that has waited for a while gets what becomes free; at most one
//! job at a time, and not longer than some hours at once, since its room is idle meanwhile. See decision 058.

use cohabit_fair_share::{Party, Turns};
use cohabit_types::{Span, Time};

use crate::PendingJob;

/// Room is kept once a job has waited so long.
const AFTER: Span = Span::from_secs(30 * 60);
/// For so long at once; then others pass again for as long.
const AT_ONCE: Span = Span::from_secs(12 * 3_600);

/// Whether room is kept for a job in this plan.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct KeptRoom {
    is_kept: bool,
}

impl KeptRoom {
    /// Until when room is kept for this job, whose turn it is, if the present nodes could hold it. Asked of
    /// all jobs in the order of turns.
    pub(crate) fn until(
        &mut self,
        job: &PendingJob,
        turns: Option<&Turns>,
        party: Party,
        now: Time,
        could_hold: impl FnOnce() -> bool,
    ) -> Option<Time> {
        let is_wide = job.demand.total_devices() > 1;
        let is_next = is_wide && turns.is_some_and(|turns| !turns.waits_for_others(party, &job.demand));
        if !is_next || self.is_kept {
            return None;
        }
        let rest = kept_for(now.since(job.eligible_at)).filter(|_| could_hold())?;
        self.is_kept = true;
        Some(now + rest)
    }
}

/// How much longer room is kept for a job that has waited this long.
fn kept_for(waited: Span) -> Option<Span> {
    let (after, at_once) = (AFTER.as_micros(), AT_ONCE.as_micros());
    let since = waited.as_micros().checked_sub(after)?;
    ((since / at_once).is_multiple_of(2)).then(|| Span::from_micros(at_once - since % at_once))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohabit_fair_share::{FairShares, Line};
    use cohabit_types::ShareTable;

    use super::*;
    use crate::tests::kit::{gpus, job};

    #[test]
    fn room_is_kept_after_half_an_hour_for_twelve_hours_and_again_after_twelve_more() {
        let kept =
            |minutes: u64| kept_for(Span::from_secs(60 * minutes)).map(|it| it.as_micros() / 60_000_000);
        let (all, last) = (Some(720), Some(1));
        let waited = [0, 29, 30, 749, 750, 1_469, 1_470];
        assert_eq!(waited.map(kept), [None, None, all, last, None, None, all]);
    }

    #[test]
    fn a_job_that_has_not_waited_or_that_no_node_can_hold_takes_no_room_from_the_next() {
        let mut shares = FairShares::new(Arc::new(ShareTable::default()));
        let party = shares.user("ada");
        let now = Time::EPOCH + Span::from_secs(7_200);
        let division = shares.divide(now, 16_000, |_| 90_000);
        let turns =
            Turns::new(&shares, &division, shares.parties().map(|party| Line { party, ..Line::default() }));
        let since = |minutes: u64| {
            let eligible_at = Time::EPOCH + Span::from_secs(7_200 - 60 * minutes);
            PendingJob { eligible_at, ..job(1, gpus(8)) }
        };
        let mut kept = KeptRoom::default();
        let mut until =
            |job: &PendingJob, could_hold: bool| kept.until(job, Some(&turns), party, now, || could_hold);
        assert_eq!(until(&since(5), true), None);
        assert_eq!(until(&since(60), false), None);
        assert_eq!(until(&since(60), true), Some(now + Span::from_secs(690 * 60)));
        assert_eq!(until(&since(90), true), None, "room is kept for one job");
    }
}

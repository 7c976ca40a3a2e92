//! How the cores and the host memory of one node are shared among the jobs on it that give a range.

use cohabit_types::HostShare;

use super::tuned_job::TunedJob;
use crate::sensitivity::{ShareClaim, hand_out};

/// Jobs are not changed for less than this part of the work that they do together.
const LEAST_GAIN: f64 = 0.02;

/// What jobs on one node are to have, if they share so much: each first as much as it has in any case, then
/// what is left goes where it is worth most.
pub(super) fn targets(all: HostShare, jobs: &[&TunedJob]) -> Vec<HostShare> {
    let least = jobs.iter().fold(HostShare::default(), |sum, job| sum.plus(job.least));
    let start = jobs.iter().map(|job| job.least);
    if !least.is_within(all) {
        return start.collect();
    }
    let mut claims: Vec<_> = jobs.iter().zip(start).map(|(it, start)| it.up_to_base(start)).collect();
    let left = hand_out_bases(all.saturating_sub(least), &mut claims);
    let mut claims: Vec<_> = jobs.iter().zip(&claims).map(|(it, claim)| it.up_to_most(claim.share)).collect();
    hand_out(left, &mut claims);
    claims.into_iter().map(|claim| claim.share).collect()
}

/// Everybody gets what it has in any case; where that is too much, the hand-out decides. Returns what is
/// left.
fn hand_out_bases(free: HostShare, claims: &mut [ShareClaim]) -> HostShare {
    let missing = claims.iter().map(|it| it.most.saturating_sub(it.share));
    let missing = missing.fold(HostShare::default(), HostShare::plus);
    if missing.is_within(free) {
        claims.iter_mut().for_each(|it| it.share = it.most);
        return free.saturating_sub(missing);
    }
    hand_out(free, claims)
}

/// What jobs that hold this are to have without giving anything up, if so much is free.
pub(super) fn grown(free: HostShare, held: &[HostShare], jobs: &[&TunedJob]) -> Vec<HostShare> {
    let mut claims: Vec<_> = jobs.iter().zip(held).map(|(it, held)| it.up_to_most(*held)).collect();
    hand_out(free, &mut claims);
    claims.into_iter().map(|claim| claim.share).collect()
}

/// Whether these jobs do so much more work with the new shares that a change is worth it.
pub(super) fn is_worth_it(jobs: &[&TunedJob], held: &[HostShare], new: &[HostShare]) -> bool {
    let total =
        |of: &[HostShare]| -> f64 { jobs.iter().zip(of).filter_map(|(job, host)| job.value(*host)).sum() };
    let before = total(held);
    total(new) - before > LEAST_GAIN * before
}

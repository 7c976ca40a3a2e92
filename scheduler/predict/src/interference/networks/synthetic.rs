//! Synthetic measurements that follow the law of slowdown, for tests.

use crate::interference::random::RandomExt;
use cohabit_policy::interference::{
    AnalyticInterference, ColocationSet, GpuKind, Interference, MaxMinSharing, MeasuredMember, MeasuredSet,
    SetMember, SetOutcome, SoloMetrics,
};
use cohabit_types::ModelFamily;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// A job with this utilization, in percent.
pub(super) fn job(busy: u32) -> SetMember {
    let utilization = f64::from(busy) / 100.0;
    let others = [("sm", utilization * 0.9), ("memory", 0.2 + utilization * 0.5)];
    SetMember {
        model: format!("model-{busy}"),
        family: Some(if busy > 50 { ModelFamily::Cnn } else { ModelFamily::Rnn }),
        batch: Some(u64::from(busy)),
        solo: SoloMetrics {
            rate: Some(1_000.0 / f64::from(busy)),
            memory: Some(f64::from(busy) * 1e8),
            utilization: Some(utilization),
            others: others.map(|(name, value)| (name.to_owned(), value)).into(),
        },
        ..SetMember::default()
    }
}

pub(super) fn set(busy: &[u32]) -> ColocationSet {
    let members = busy.iter().map(|busy| job(*busy)).collect();
    ColocationSet { gpu: GpuKind::named("a100"), sharing: None, members }
}

/// A set with the slowdowns of the law.
pub(super) fn measured(set: ColocationSet) -> MeasuredSet {
    let predicted =
        AnalyticInterference::<MaxMinSharing>::default().predict(std::slice::from_ref(&set)).remove(0);
    let observed = |predicted: &cohabit_policy::interference::ColocationEstimate| MeasuredMember {
        slowdown: predicted.slowdown,
        ..MeasuredMember::default()
    };
    MeasuredSet { outcome: SetOutcome::Ran(predicted.iter().map(observed).collect()), set }
}

/// Random sets of these jobs: `count` sets of `members` jobs each.
pub(super) fn drawn(jobs: &[u32], members: usize, count: usize, seed: u64) -> Vec<MeasuredSet> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut one = || jobs[(random.part() * jobs.len() as f64) as usize];
    let mut set_of = || measured(set(&(0..members).map(|_| one()).collect::<Vec<u32>>()));
    (0..count).map(|_| set_of()).collect()
}

pub(super) const JOBS: [u32; 8] = [13, 24, 35, 46, 57, 68, 79, 90];

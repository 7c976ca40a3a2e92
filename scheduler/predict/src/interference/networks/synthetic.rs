//! Synthetic measurements that follow the law of slowdown, for tests.

use crate::random::RandomExt;
use cohabit_policy::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, GpuKind, Interference, MaxMinSharing,
    MeasuredMember, MeasuredSet, SetMember, SetOutcome, SoloMetrics,
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
    let observed = |predicted: &ColocationEstimate| MeasuredMember {
        slowdown: predicted.slowdown,
        ..MeasuredMember::default()
    };
    MeasuredSet { outcome: SetOutcome::Ran(predicted.iter().map(observed).collect()), set }
}

/// Estimates of members that do not affect each other.
pub(super) fn estimates_alone(set: &ColocationSet) -> Vec<ColocationEstimate> {
    set.members.iter().map(ColocationEstimate::alone).collect()
}

/// What a member of a set holds less than alone, in bytes: the members share a context.
pub(super) const SHARED_CONTEXT: f64 = 8e8;

/// The same set with what its members use: neither is a multiple of what they use alone. They share a
/// context, and keep the GPU busy for at most all of the time together.
pub(super) fn with_usage(mut measured: MeasuredSet) -> MeasuredSet {
    let members = &measured.set.members;
    let wanted = members.iter().filter_map(|member| member.solo.utilization).sum::<f64>().max(1.0);
    if let SetOutcome::Ran(observed) = &mut measured.outcome {
        for (member, observed) in members.iter().zip(observed) {
            observed.memory = member.solo.memory.map(|alone| alone - SHARED_CONTEXT);
            observed.utilization = member.solo.utilization.map(|alone| alone / wanted);
        }
    }
    measured
}

/// Random sets of these jobs: `count` sets of `members` jobs each.
pub(super) fn drawn(jobs: &[u32], members: usize, count: usize, seed: u64) -> Vec<MeasuredSet> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut one = || jobs[(random.part() * jobs.len() as f64) as usize];
    let mut set_of = || measured(set(&(0..members).map(|_| one()).collect::<Vec<u32>>()));
    (0..count).map(|_| set_of()).collect()
}

pub(super) const JOBS: [u32; 8] = [13, 24, 35, 46, 57, 68, 79, 90];

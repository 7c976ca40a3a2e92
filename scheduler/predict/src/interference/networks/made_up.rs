//! Measurements that the law of shared GPUs made up, for tests.

use crate::interference::chance::Chance;
use cohabit_policy::interference::{
    ByLaw, CoLocation, FairShares, GpuKind, Interference, MeasuredSet, Member, Observed, Outcome, Solo,
};
use cohabit_types::Family;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// A job that keeps the GPU busy for so many of a hundred parts of the time.
pub(super) fn job(busy: u32) -> Member {
    let utilisation = f64::from(busy) / 100.0;
    let others = [("sm", utilisation * 0.9), ("memory", 0.2 + utilisation * 0.5)];
    Member {
        model: format!("model-{busy}"),
        family: Some(if busy > 50 { Family::Cnn } else { Family::Rnn }),
        batch: Some(u64::from(busy)),
        solo: Solo {
            rate: Some(1_000.0 / f64::from(busy)),
            memory: Some(f64::from(busy) * 1e8),
            utilisation: Some(utilisation),
            others: others.map(|(name, value)| (name.to_owned(), value)).into(),
        },
        ..Member::default()
    }
}

pub(super) fn set(busy: &[u32]) -> CoLocation {
    let members = busy.iter().map(|busy| job(*busy)).collect();
    CoLocation { gpu: GpuKind::named("a100"), sharing: None, members }
}

/// What the law says of a set.
pub(super) fn measured(set: CoLocation) -> MeasuredSet {
    let said = ByLaw::<FairShares>::default().predict(std::slice::from_ref(&set)).remove(0);
    let observed = |said: &cohabit_policy::interference::Colocated| Observed {
        slowdown: said.slowdown,
        ..Observed::default()
    };
    MeasuredSet { outcome: Outcome::Ran(said.iter().map(observed).collect()), set }
}

/// So many sets of so many of these jobs, drawn by the seed.
pub(super) fn drawn(jobs: &[u32], members: usize, count: usize, seed: u64) -> Vec<MeasuredSet> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut one = || jobs[(random.part() * jobs.len() as f64) as usize];
    let mut set_of = || measured(set(&(0..members).map(|_| one()).collect::<Vec<u32>>()));
    (0..count).map(|_| set_of()).collect()
}

pub(super) const JOBS: [u32; 8] = [13, 24, 35, 46, 57, 68, 79, 90];

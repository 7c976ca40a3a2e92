//! What a law of slowdown says of jobs that are known by their measurements alone.

use super::{CoLocation, Colocated, FairShares, Interference, Law, UNKNOWN_UNCERTAINTY};

/// A law as a predictor: it needs to know how busy each job keeps the GPU alone.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct ByLaw<L = FairShares> {
    /// The law.
    pub law: L,
}

/// What a job of which nobody knows better is taken for: most training jobs keep a GPU busy.
pub(crate) const USUAL_BUSY: f64 = 0.8;
/// How well the law fits published measurements.
const UNCERTAINTY: f64 = 0.05;

impl<L: Law> Interference for ByLaw<L> {
    fn predict(&self, sets: &[CoLocation]) -> Vec<Vec<Colocated>> {
        sets.iter().map(|set| self.of_set(set)).collect()
    }
}

impl<L: Law> ByLaw<L> {
    fn of_set(&self, set: &CoLocation) -> Vec<Colocated> {
        if let [member] = &set.members[..] {
            return vec![Colocated::alone(member)];
        }
        let told = || set.members.iter().map(|member| member.solo.utilisation);
        let busy: Vec<f64> = told().map(|busy| busy.unwrap_or(USUAL_BUSY)).collect();
        let uncertainty = if told().all(|it| it.is_some()) { UNCERTAINTY } else { UNKNOWN_UNCERTAINTY };
        let fits = set.memory_filled().map_or(1.0, |filled| if filled > 1.0 { 0.0 } else { 1.0 });
        let slowdowns = self.law.slowdowns(&busy);
        let member =
            |(member, slowdown)| Colocated { fits, ..Colocated::slowed(member, slowdown, uncertainty) };
        set.members.iter().zip(slowdowns).map(member).collect()
    }
}

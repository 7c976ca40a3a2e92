//! What the paper leaves open, and the defaults.

use super::TrafficPattern;
use crate::interference::ContentionMetrics;

/// All options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClwpNlwpOptions {
    /// How the similarity of two jobs is measured.
    pub(crate) similarity: SimilarityMeasure,
    /// What a neighbor's slots are divided by.
    pub(crate) slots: SlotNormalization,
    /// The weight of a node's utilization against similarity (`mu`).
    pub(crate) mu: f64,
    /// The traffic assumed for tasks whose model does not describe it.
    pub(crate) traffic: TrafficPattern,
    /// The weights of costs where tasks are placed.
    pub(crate) costs: CostWeights,
}

/// The similarity measure of two jobs' contention metrics.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimilarityMeasure {
    /// The cosine of their angle: whether they use the same resources, however much.
    #[default]
    Cosine,
    /// The sum of their products: how much they use of the same resources.
    Load,
}

/// What the weight of a neighbor is a fraction of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotNormalization {
    /// The busy slots of its node: weights sum up to 1, however many jobs there are.
    #[default]
    Busy,
    /// All slots of its node: crowded nodes cost more.
    All,
}

/// The weight of a second of each kind (`a1`, `a2`, `a3`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CostWeights {
    /// Of a task's own iteration.
    pub(crate) own: f64,
    /// Of the neighbors' iterations, as far as the task prolongs them.
    pub(crate) hurt: f64,
    /// Of communication.
    pub(crate) communication: f64,
}

impl Default for ClwpNlwpOptions {
    fn default() -> ClwpNlwpOptions {
        let costs = CostWeights { own: 1.0, hurt: 1.0, communication: 1.0 };
        let (similarity, slots, traffic) =
            (SimilarityMeasure::default(), SlotNormalization::default(), TrafficPattern::default());
        ClwpNlwpOptions { similarity, slots, mu: 0.2, traffic, costs }
    }
}

impl CostWeights {
    /// The weighted sum of seconds of each kind.
    pub(super) fn total(self, own: f64, hurt: f64, communication: f64) -> f64 {
        self.own * own + self.hurt * hurt + self.communication * communication
    }
}

impl SimilarityMeasure {
    pub(super) fn of(self, one: &ContentionMetrics, other: &ContentionMetrics) -> f64 {
        match self {
            SimilarityMeasure::Cosine => one.similarity(other),
            SimilarityMeasure::Load => one.load(other),
        }
    }
}

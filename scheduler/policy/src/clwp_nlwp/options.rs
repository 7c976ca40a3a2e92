//! What the paper leaves open, with what is taken where nobody says otherwise.

use super::TrafficPattern;
use crate::interference::ContentionMetrics;

/// All that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClwpNlwpOptions {
    /// How alike two jobs are.
    pub(crate) likeness: SimilarityMeasure,
    /// What a neighbour's slots are counted against.
    pub(crate) slots: SlotNormalization,
    /// What a node's utilisation counts against likeness (`mu`).
    pub(crate) mu: f64,
    /// What tasks send each other whose model does not say more.
    pub(crate) traffic: TrafficPattern,
    /// What counts how much where tasks are placed.
    pub(crate) costs: CostWeights,
}

/// The measure of likeness of two jobs' contention metrics.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimilarityMeasure {
    /// The cosine of their angle: whether they want the same, however much.
    #[default]
    Cosine,
    /// The sum of their products: how much they want of the same.
    Load,
}

/// What the weight of a neighbour is a share of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotNormalization {
    /// The busy slots of its node: weights add up to 1, however many jobs there are.
    #[default]
    Busy,
    /// All slots of its node: crowded nodes cost more.
    All,
}

/// What a second of each kind counts (`a1`, `a2`, `a3`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CostWeights {
    /// Of a task's own iteration.
    pub(crate) own: f64,
    /// Of the neighbours' iterations, for the task's sake.
    pub(crate) hurt: f64,
    /// Of communication.
    pub(crate) communication: f64,
}

impl Default for ClwpNlwpOptions {
    fn default() -> ClwpNlwpOptions {
        let costs = CostWeights { own: 1.0, hurt: 1.0, communication: 1.0 };
        let (likeness, slots, traffic) =
            (SimilarityMeasure::default(), SlotNormalization::default(), TrafficPattern::default());
        ClwpNlwpOptions { likeness, slots, mu: 0.2, traffic, costs }
    }
}

impl CostWeights {
    /// Seconds of each kind, weighted and added.
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

//! The settings of a training (section 8).

use super::shape::NetworkVariant;

/// The settings of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearnerSettings {
    /// What is trained.
    pub variant: NetworkVariant,
    /// The seed of all random draws.
    pub seed: u64,
    /// The learning rate of AdamW.
    pub learning_rate: f64,
    /// The weight decay of AdamW.
    pub weight_decay: f64,
    /// The number of transitions in an update.
    pub batch: usize,
    /// The largest number of transitions that are remembered.
    pub replay: usize,
    /// The largest norm of the gradient.
    pub max_gradient_norm: f64,
    /// The number of sub-steps between two updates.
    pub update_interval: u64,
    /// The number of updates between two copies of the networks to the target networks.
    pub target_interval: u64,
    /// The utility by which the teacher's action should lead.
    pub margin: f64,
    /// The probability of a random action of an agent at the beginning.
    pub first_epsilon: f64,
    /// The probability at the end of the exploration.
    pub last_epsilon: f64,
    /// The part of the training in which the probability falls.
    pub exploration: f64,
}

impl LearnerSettings {
    /// The settings of the specification.
    #[must_use]
    pub fn new(variant: NetworkVariant, seed: u64) -> LearnerSettings {
        LearnerSettings {
            variant,
            seed,
            learning_rate: 5e-4,
            weight_decay: 1e-4,
            batch: 32,
            replay: 20_000,
            max_gradient_norm: 1.0,
            update_interval: 12,
            target_interval: 250,
            margin: 0.2,
            first_epsilon: 0.3,
            last_epsilon: 0.02,
            exploration: 0.6,
        }
    }

    /// The probability of a random action after this part of the training, from 0 to 1.
    pub(super) fn epsilon(&self, progress: f64) -> f64 {
        let passed = (progress / self.exploration).clamp(0.0, 1.0);
        self.first_epsilon + (self.last_epsilon - self.first_epsilon) * passed
    }

    /// The weight of the imitation loss after this part of the training: it falls from 1 to 0.
    pub(super) fn imitation_weight(&self, progress: f64) -> f64 {
        1.0 - progress.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exploration_and_imitation_fall() {
        let settings = LearnerSettings::new(NetworkVariant::default(), 1);
        let epsilons = [0.0, 0.3, 0.6, 1.0].map(|progress| settings.epsilon(progress));
        for (epsilon, should) in epsilons.into_iter().zip([0.3, 0.16, 0.02, 0.02]) {
            assert!((epsilon - should).abs() < 1e-12, "{epsilon}");
        }
        assert_eq!([0.0, 0.25, 1.0].map(|progress| settings.imitation_weight(progress)), [1.0, 0.75, 0.0]);
    }
}

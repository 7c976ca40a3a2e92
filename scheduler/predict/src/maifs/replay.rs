//! The last transitions, from which a learner draws.

use cohabit_policy::maifs::JointTransition;
use rand_chacha::ChaCha8Rng;

use crate::random::RandomExt;

/// A ring of transitions.
#[derive(Debug)]
pub(super) struct Replay {
    capacity: usize,
    transitions: Vec<JointTransition>,
    /// The place of the oldest one once the ring is full.
    next: usize,
}

impl Replay {
    pub(super) fn new(capacity: usize) -> Replay {
        Replay { capacity: capacity.max(1), transitions: Vec::new(), next: 0 }
    }

    /// Keeps a transition, in the place of the oldest one if the ring is full.
    pub(super) fn push(&mut self, transition: JointTransition) {
        if self.transitions.len() < self.capacity {
            self.transitions.push(transition);
        } else {
            self.transitions[self.next] = transition;
            self.next = (self.next + 1) % self.capacity;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.transitions.len()
    }

    /// Draws this many with replacement.
    pub(super) fn draw(&self, count: usize, random: &mut ChaCha8Rng) -> Vec<JointTransition> {
        let mut one = || self.transitions[random.below(self.transitions.len())].clone();
        if self.transitions.is_empty() { Vec::new() } else { (0..count).map(|_| one()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cohabit_policy::maifs::{JointObservation, ObservationShape};
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn the_oldest_transitions_are_forgotten() {
        let observation = JointObservation::new(ObservationShape { nodes: 1, jobs: 1, levels: 1 });
        let observation = Arc::new(observation);
        let mut replay = Replay::new(3);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        assert_eq!(replay.draw(2, &mut random), []);
        for reward in 0..5_u8 {
            replay.push(JointTransition {
                observation: Arc::clone(&observation),
                action: Vec::new(),
                reward: f32::from(reward),
                discount: 1.0,
                next: None,
                teacher: Vec::new(),
            });
        }
        assert_eq!(replay.len(), 3);
        let mut rewards: Vec<f32> = replay.draw(100, &mut random).iter().map(|it| it.reward).collect();
        rewards.sort_by(f32::total_cmp);
        rewards.dedup();
        assert_eq!(rewards, [2.0, 3.0, 4.0]);
    }
}

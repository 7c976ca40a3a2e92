//! Agents that value everything at random: whatever trained ones choose, the rest of the system must hold.

use std::sync::Arc;

use cohabit_policy::maifs::{Agents, Coordination, GraphKind, JointObservation, JointValues, LEVELS};

use crate::random::Random;

const COORDINATIONS: [Coordination; 4] = [
    Coordination::Agents(GraphKind::Dynamic),
    Coordination::Agents(GraphKind::Empty),
    Coordination::Agents(GraphKind::Full),
    Coordination::Single,
];

/// The number of factors of a task.
const FACTORS: usize = 4;

/// Agents without any sense.
pub(crate) struct RandomAgents {
    draws: Random,
    coordination: Coordination,
    levels: usize,
}

impl RandomAgents {
    pub(crate) fn new(seed: u64) -> RandomAgents {
        let mut draws = Random::stream(seed, "values of random agents");
        let coordination = *draws.pick(&COORDINATIONS);
        let levels = if draws.chance(0.2) { 1 } else { LEVELS };
        RandomAgents { draws, coordination, levels }
    }

    fn numbers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.draws.normal() as f32).collect()
    }
}

impl Agents for RandomAgents {
    fn coordination(&self) -> Coordination {
        self.coordination
    }

    fn levels(&self) -> usize {
        self.levels
    }

    fn values(&mut self, observations: &[Arc<JointObservation>]) -> Vec<JointValues> {
        let drawn = observations.iter().map(|observation| {
            let shape = observation.shape();
            JointValues {
                shape,
                utilities: self.numbers(shape.nodes * shape.actions()),
                factors: self.numbers(shape.nodes * shape.tasks() * FACTORS),
                bilinear: self.numbers(FACTORS * FACTORS),
                kappa: self.draws.fraction() as f32,
                state: 0.0,
            }
        });
        drawn.collect()
    }
}

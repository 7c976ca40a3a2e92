//! Observations with values: written down, or drawn.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::maifs::task_utilities::TaskUtilities;
use crate::maifs::{
    JointObservation, JointValues, ObservationShape, PAIR_FEATURES, SERVER_FEATURES, TASK_FEATURES,
};

/// The number of factors of a drawn task.
const RANK: usize = 8;

/// An observation with the values of its networks.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    pub(super) observation: JointObservation,
    pub(super) values: JointValues,
}

impl Instance {
    /// One level, everything legal, payoffs of `kappa` alone; a row of utilities for each agent, action 0
    /// first.
    pub(super) fn of(utilities: &[&[f32]], kappa: f32) -> Instance {
        let shape = ObservationShape { nodes: utilities.len(), jobs: utilities[0].len() - 1, levels: 1 };
        let values = JointValues {
            shape,
            utilities: utilities.concat(),
            factors: vec![0.0; shape.nodes * shape.tasks()],
            bilinear: vec![0.0],
            kappa,
            state: 0.0,
        };
        Instance { observation: observation(shape, &|_, _, _| true), values }
    }

    /// Random utilities, payoffs and legal actions, without ties.
    pub(super) fn drawn(seed: u64, shape: ObservationShape) -> Instance {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| number(&mut random)).collect() };
        let values = JointValues {
            shape,
            utilities: numbers(shape.nodes * shape.actions()),
            factors: numbers(shape.nodes * shape.tasks() * RANK),
            bilinear: numbers(RANK * RANK),
            kappa: numbers(1)[0].abs(),
            state: numbers(1)[0],
        };
        let legal: Vec<bool> = numbers(shape.nodes * shape.jobs).iter().map(|it| *it > -0.5).collect();
        let observation = observation(shape, &|node, job, _| legal[node * shape.jobs + job]);
        Instance { observation, values }
    }

    pub(super) fn utilities(&self) -> TaskUtilities {
        TaskUtilities::of(&self.observation, &self.values.utilities)
    }

    /// The instance with nodes and jobs in another order: `nodes[i]` is the old index of the new node i. A
    /// place beyond the old ones is padding.
    pub(super) fn rearranged(&self, nodes: &[usize], jobs: &[usize]) -> Instance {
        let old = self.values.shape;
        let shape = ObservationShape { nodes: nodes.len(), jobs: jobs.len(), ..old };
        let old_task = |task: usize| if task == 0 { 0 } else { 1 + jobs[task - 1] };
        let mut utilities = Vec::new();
        let mut factors = Vec::new();
        for node in nodes {
            for action in 0..shape.actions() {
                let task = old_task(action.div_ceil(shape.levels));
                let action =
                    if action == 0 { 0 } else { (task - 1) * old.levels + 1 + (action - 1) % old.levels };
                let at = node * old.actions() + action;
                let is_known = *node < old.nodes && task < old.tasks();
                utilities.push(if is_known { self.values.utilities[at] } else { 9.0 });
            }
            for task in (0..shape.tasks()).map(old_task) {
                let at = (node * old.tasks() + task) * RANK;
                let is_known = *node < old.nodes && task < old.tasks();
                factors.extend(if is_known { &self.values.factors[at..at + RANK] } else { &[9.0; RANK] });
            }
        }
        let mut observation = JointObservation::new(shape);
        for (node, from) in nodes.iter().enumerate().filter(|(_, from)| **from < old.nodes) {
            observation.set_server(node, &[0.0; SERVER_FEATURES]);
            for (job, of) in jobs.iter().enumerate().filter(|(_, of)| **of < old.jobs) {
                observation.set_task(job, &[0.0; TASK_FEATURES]);
                let legal = self.observation.legal_of(*from);
                (0..old.levels).filter(|level| legal[1 + of * old.levels + level]).for_each(|level| {
                    observation.allow(node, job, level);
                });
            }
        }
        let values = JointValues { shape, utilities, factors, ..self.values.clone() };
        Instance { observation, values }
    }
}

fn observation(shape: ObservationShape, is_legal: &dyn Fn(usize, usize, usize) -> bool) -> JointObservation {
    let mut observation = JointObservation::new(shape);
    (0..shape.jobs).for_each(|job| observation.set_task(job, &[0.0; TASK_FEATURES]));
    for node in 0..shape.nodes {
        observation.set_server(node, &[0.0; SERVER_FEATURES]);
        for job in 0..shape.jobs {
            observation.set_pair(node, job, &[0.0; PAIR_FEATURES]);
            let levels = (0..shape.levels).filter(|level| is_legal(node, job, *level));
            levels.for_each(|level| observation.allow(node, job, level));
        }
    }
    observation
}

/// A number in [-1, 1).
fn number(random: &mut ChaCha8Rng) -> f32 {
    (random.next_u32() >> 8) as f32 / (1_u32 << 23) as f32 - 1.0
}

/// A random order of the numbers below `count`.
pub(super) fn order(seed: u64, count: usize) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut keyed: Vec<(u64, usize)> = (0..count).map(|it| (random.next_u64(), it)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, it)| it).collect()
}

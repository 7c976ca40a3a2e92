//! What the teacher's actions say of the utilities (section 8).
//!
//! Every agent that was taught is one question with the utilities of its actions as logits. The single agent
//! is one question for each observation, over all starts and doing nothing.

use candle_core::{Device, Result, Tensor};
use candle_nn::ops::log_softmax;
use cohabit_policy::maifs::{AgentAction, Coordination, JointTransition};

use super::observation_batch::ObservationBatch;

/// Taken from the logit of an illegal action.
const MASKED_LOGIT: f64 = 1e9;

/// R questions with A answers, and what the teacher answers.
#[derive(Debug)]
pub(super) struct TaughtActions {
    coordination: Coordination,
    /// 1 for legal answers, `[R, A]`.
    legal: Tensor,
    /// The teacher's answers, `[R, A]`; each row adds up to 1, or to 0 if nothing is taught.
    targets: Tensor,
    /// The weights of the questions, `[R]`, which add up to 1.
    weights: Tensor,
}

impl TaughtActions {
    /// `None` if nothing is taught. An action that is not legal teaches nothing.
    pub(super) fn of(
        batch: &ObservationBatch,
        transitions: &[&JointTransition],
        coordination: Coordination,
    ) -> Result<Option<TaughtActions>> {
        let mut questions = Questions::default();
        for (transition, legal) in transitions.iter().zip(&batch.legal) {
            match coordination {
                Coordination::Agents(_) => questions.add_agents(batch, transition, legal),
                Coordination::Single => questions.add_single(batch, transition, legal),
            }
        }
        questions.finish(batch, coordination)
    }

    /// Mean cross-entropy between the teacher's answers and the softmax of the utilities
    /// `[N, V, 1 + K * L]`.
    pub(super) fn cross_entropy(&self, utilities: &Tensor, batch: &ObservationBatch) -> Result<Tensor> {
        let logits = self.masked_logits(utilities, batch)?;
        let likelihood = (log_softmax(&logits, 1)? * &self.targets)?.sum(1)?;
        (likelihood * &self.weights)?.sum_all()?.neg()
    }

    /// Mean of `max_a [f(a) + margin (a is not the teacher's)] - f(teacher's)`: 0 once the teacher's action
    /// leads by the margin.
    pub(super) fn margin(&self, utilities: &Tensor, batch: &ObservationBatch, margin: f64) -> Result<Tensor> {
        let logits = self.masked_logits(utilities, batch)?;
        let not_taught = self.targets.le(0.0)?.to_dtype(logits.dtype())?;
        let best = (&logits + (not_taught * margin)?)?.max(1)?;
        let taught = (&logits * &self.targets)?.sum(1)?;
        ((best - taught)? * &self.weights)?.sum_all()
    }

    /// The logits of the legal answers, `[R, A]`; very small where illegal.
    fn masked_logits(&self, utilities: &Tensor, batch: &ObservationBatch) -> Result<Tensor> {
        let &ObservationBatch { count, nodes, .. } = batch;
        let actions = batch.actions();
        let logits = match self.coordination {
            Coordination::Agents(_) => utilities.reshape((count * nodes, actions))?,
            Coordination::Single => {
                let idle = (utilities.narrow(2, 0, 1)?.squeeze(2)? * &batch.node_weights)?.sum_keepdim(1)?;
                let starts = utilities.narrow(2, 1, actions - 1)?.contiguous()?;
                Tensor::cat(&[idle, starts.reshape((count, nodes * (actions - 1)))?], 1)?
            }
        };
        (logits * &self.legal)? + self.legal.affine(MASKED_LOGIT, -MASKED_LOGIT)?
    }
}

/// The questions as plain numbers.
#[derive(Default)]
struct Questions {
    legal: Vec<f32>,
    targets: Vec<f32>,
    weights: Vec<f32>,
}

impl Questions {
    /// One question for each agent.
    fn add_agents(&mut self, batch: &ObservationBatch, transition: &JointTransition, legal: &[bool]) {
        for (node, legal) in legal.chunks(batch.actions()).enumerate() {
            let taught = transition.teacher.get(node).copied().flatten();
            let is_agent = transition.observation.has_node().get(node) == Some(&true);
            let taught = taught.map(|action| action.index(batch.levels)).filter(|at| is_agent && legal[*at]);
            self.add(legal.iter().copied(), taught.as_slice());
        }
    }

    /// One question for the observation. Several starts are equally right.
    fn add_single(&mut self, batch: &ObservationBatch, transition: &JointTransition, legal: &[bool]) {
        let actions = batch.actions();
        let start = |(node, action): (usize, &Option<AgentAction>)| {
            let index = action.filter(|it| *it != AgentAction::Nothing)?.index(batch.levels);
            legal[node * actions + index].then_some(node * (actions - 1) + index)
        };
        let mut taught: Vec<usize> = transition.teacher.iter().enumerate().filter_map(start).collect();
        if taught.is_empty() && transition.teacher.contains(&Some(AgentAction::Nothing)) {
            taught.push(0);
        }
        let starts = legal.chunks(actions).flat_map(|legal| legal[1..].iter().copied());
        self.add(std::iter::once(true).chain(starts), &taught);
    }

    fn add(&mut self, legal: impl Iterator<Item = bool>, taught: &[usize]) {
        let from = self.legal.len();
        self.legal.extend(legal.map(|is| f32::from(u8::from(is))));
        self.targets.resize(self.legal.len(), 0.0);
        taught.iter().for_each(|at| self.targets[from + at] = 1.0 / taught.len() as f32);
        self.weights.push(if taught.is_empty() { 0.0 } else { 1.0 });
    }

    fn finish(self, batch: &ObservationBatch, coordination: Coordination) -> Result<Option<TaughtActions>> {
        let taught: f32 = self.weights.iter().sum();
        if taught == 0.0 {
            return Ok(None);
        }
        let precision = batch.node_weights.dtype();
        let rows = self.weights.len();
        let tensor = |values: Vec<f32>, shape: &[usize]| {
            Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(precision)
        };
        let answers = self.legal.len() / rows;
        Ok(Some(TaughtActions {
            coordination,
            legal: tensor(self.legal, &[rows, answers])?,
            targets: tensor(self.targets, &[rows, answers])?,
            weights: (tensor(self.weights, &[rows])? / f64::from(taught))?,
        }))
    }
}

//! Trains the networks: imitation of a teacher, then double Q-learning (section 8).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use candle_core::backprop::GradStore;
use candle_core::{Tensor, Var};
use candle_nn::{AdamW, Optimizer};
use cohabit_policy::maifs::{JointObservation, JointQ, JointTransition};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::agents::{ExploringAgents, NetworkAgents};
use super::feature_scales::FeatureScales;
use super::imitation::TaughtActions;
use super::inference::{AgentInference, StoredTensors, WeightsError};
use super::losses::losses;
use super::networks::{AgentNetworks, PAYOFF, STATE};
use super::observation_batch::ObservationBatch;
use super::replay::Replay;
use super::settings::LearnerSettings;
use super::trained_agents::TrainedAgents;
use crate::networks::{PRECISION, Parameters, adam_w, clip, number};
use crate::random::RandomExt;

/// Trains the networks of all agents. Everything runs on one thread; the same seed and the same calls give
/// the same weights, bit for bit.
pub struct Learner {
    settings: LearnerSettings,
    scales: FeatureScales,
    pub(super) networks: AgentNetworks,
    pub(super) parameters: Parameters,
    optimizer: AdamW,
    /// Of the parameters that utilities depend on: imitation teaches nothing of payoffs and states.
    imitation_optimizer: AdamW,
    online: Arc<AgentInference>,
    target: Arc<AgentInference>,
    replay: Replay,
    random: ChaCha8Rng,
    progress: f64,
    sub_steps: u64,
    updates: u64,
    /// A pool of one thread: a second one would only add overhead. `None` uses the common pool.
    pool: Option<Arc<rayon::ThreadPool>>,
}

/// The losses of an update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpdateLoss {
    /// The mean squared error of Q.
    pub q: f64,
    /// The margin loss of the teacher's actions, without its weight; `None` if the batch has none.
    pub imitation: Option<f64>,
}

/// Why a training failed.
#[derive(Debug, thiserror::Error)]
pub enum LearnerError {
    /// The tensor library reported an error.
    #[error("the training of the agents failed: {0}")]
    Tensors(#[from] candle_core::Error),
    /// The parameters do not fit the networks.
    #[error("the training of the agents failed: {0}")]
    Weights(#[from] WeightsError),
    /// The weights have diverged.
    #[error("the loss of the agents is {0}: use a lower learning rate, and check that rewards are finite")]
    NotFinite(f64),
}

impl std::fmt::Debug for Learner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learner").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Learner {
    /// Untrained networks for features of these scales.
    ///
    /// # Errors
    ///
    /// If the tensor library reports one.
    pub fn new(settings: LearnerSettings, scales: FeatureScales) -> Result<Learner, LearnerError> {
        let mut parameters = Parameters::drawn(settings.seed, PRECISION);
        let networks = AgentNetworks::new(&mut parameters, settings.variant)?;
        let online = inference(&parameters, &settings, &scales)?;
        Ok(Learner {
            optimizer: adam_w(parameters.iter(), settings.learning_rate, settings.weight_decay)?,
            imitation_optimizer: adam_w(
                imitated(&parameters),
                settings.learning_rate,
                settings.weight_decay,
            )?,
            target: Arc::clone(&online),
            online,
            replay: Replay::new(settings.replay),
            random: ChaCha8Rng::seed_from_u64(settings.seed.wrapping_add(1)),
            progress: 0.0,
            sub_steps: 0,
            updates: 0,
            pool: rayon::ThreadPoolBuilder::new().num_threads(1).build().ok().map(Arc::new),
            settings,
            scales,
            networks,
            parameters,
        })
    }

    /// Learns the teacher's actions of these transitions by cross-entropy, once in random order. Returns the
    /// mean loss.
    ///
    /// # Errors
    ///
    /// If the tensor library reports one, or the loss is not finite.
    pub fn imitate(&mut self, taught: &[JointTransition]) -> Result<f64, LearnerError> {
        let mut order: Vec<&JointTransition> = taught.iter().collect();
        self.random.shuffle(&mut order);
        let (mut sum, mut steps) = (0.0, 0_u32);
        for part in order.chunks(self.settings.batch) {
            if let Some(loss) = self.on_one_thread(|learner| learner.imitate_batch(part))? {
                sum += loss;
                steps += 1;
            }
        }
        self.copy_to_target()?;
        Ok(sum / f64::from(steps.max(1)))
    }

    /// Sets the part of the training that has passed, from 0 to 1. Exploration and the weight of imitation
    /// follow it.
    pub fn set_progress(&mut self, progress: f64) {
        self.progress = progress.clamp(0.0, 1.0);
    }

    /// Agents for one episode that explore, and the transitions that they are told. Take those of an episode
    /// with `try_iter`: a plain iteration waits until the agents are dropped.
    pub fn exploring_agents(&mut self) -> (ExploringAgents, Receiver<JointTransition>) {
        let (sender, receiver) = channel();
        let agents = ExploringAgents {
            agents: self.agents(),
            epsilon: self.settings.epsilon(self.progress),
            random: ChaCha8Rng::seed_from_u64(self.random.next_u64()),
            transitions: sender,
        };
        (agents, receiver)
    }

    /// Greedy agents with the present weights.
    #[must_use]
    pub fn agents(&self) -> NetworkAgents {
        NetworkAgents {
            inference: Arc::clone(&self.online),
            coordination: self.settings.variant.coordination,
        }
    }

    /// A copy of the present weights.
    ///
    /// # Errors
    ///
    /// If the tensor library reports one.
    pub fn trained(&self) -> Result<TrainedAgents, LearnerError> {
        Ok(TrainedAgents {
            variant: self.settings.variant,
            seed: self.settings.seed,
            scales: self.scales.clone(),
            tensors: self.parameters.values()?,
        })
    }

    /// Remembers a transition, and updates the networks if it is time. Transitions come in their order.
    ///
    /// # Errors
    ///
    /// If the tensor library reports one, or the loss is not finite.
    pub fn observe(&mut self, transition: JointTransition) -> Result<Option<UpdateLoss>, LearnerError> {
        self.replay.push(transition);
        self.sub_steps += 1;
        let is_time = self.sub_steps.is_multiple_of(self.settings.update_interval);
        if is_time && self.replay.len() >= self.settings.batch { self.update().map(Some) } else { Ok(None) }
    }

    /// The number of updates by Q-learning so far.
    #[must_use]
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// One update on transitions that are drawn from the remembered ones.
    pub(super) fn update(&mut self) -> Result<UpdateLoss, LearnerError> {
        let drawn = self.replay.draw(self.settings.batch, &mut self.random);
        let drawn: Vec<&JointTransition> = drawn.iter().collect();
        let loss = self.on_one_thread(|learner| learner.update_on(&drawn))?;
        self.updates += 1;
        if self.updates.is_multiple_of(self.settings.target_interval) {
            self.copy_to_target()?;
        }
        Ok(loss)
    }

    fn update_on(&mut self, drawn: &[&JointTransition]) -> Result<UpdateLoss, LearnerError> {
        let batch = self.batch(drawn)?;
        let targets: Vec<f32> = drawn.iter().map(|it| self.target_value(it) as f32).collect();
        let (q, imitation) = losses(&self.networks, &self.settings, &batch, drawn, &targets)?;
        let weight = self.settings.imitation_weight(self.progress);
        let total = match &imitation {
            Some(imitation) => (&q + (imitation * weight)?)?,
            None => q.clone(),
        };
        let mut gradients = gradients(&total)?;
        clip(&mut gradients, self.parameters.iter(), self.settings.max_gradient_norm)?;
        self.optimizer.step(&gradients)?;
        self.online = inference(&self.parameters, &self.settings, &self.scales)?;
        let imitation = imitation.map(|it| number(&it)).transpose()?;
        Ok(UpdateLoss { q: number(&q)?, imitation })
    }

    fn imitate_batch(&mut self, part: &[&JointTransition]) -> Result<Option<f64>, LearnerError> {
        let batch = self.batch(part)?;
        let taught = TaughtActions::of(&batch, part, self.settings.variant.coordination)?;
        let Some(taught) = taught else { return Ok(None) };
        let encoded = self.networks.encode(&batch)?;
        let loss = taught.cross_entropy(&self.networks.utilities(&encoded, &batch)?, &batch)?;
        let mut gradients = gradients(&loss)?;
        clip(&mut gradients, imitated(&self.parameters), self.settings.max_gradient_norm)?;
        self.imitation_optimizer.step(&gradients)?;
        Ok(Some(number(&loss)?))
    }

    fn batch(&self, transitions: &[&JointTransition]) -> Result<ObservationBatch, LearnerError> {
        let observations: Vec<Arc<JointObservation>> =
            transitions.iter().map(|it| Arc::clone(&it.observation)).collect();
        Ok(ObservationBatch::of(&observations, &self.scales, PRECISION)?)
    }

    /// `r + discount * Q'(s', argmax_a Q(s', a))`: the networks choose, the target networks value. Each uses
    /// the graph of its own utilities.
    fn target_value(&self, transition: &JointTransition) -> f64 {
        let reward = f64::from(transition.reward);
        let Some(next) = &transition.next else { return reward };
        let coordination = self.settings.variant.coordination;
        let best = JointQ::of(next, &self.online.values(next), coordination).best_action();
        let value = JointQ::of(next, &self.target.values(next), coordination).value(&best);
        reward + f64::from(transition.discount) * value
    }

    fn copy_to_target(&mut self) -> Result<(), LearnerError> {
        self.online = inference(&self.parameters, &self.settings, &self.scales)?;
        self.target = Arc::clone(&self.online);
        Ok(())
    }

    fn on_one_thread<T: Send>(
        &mut self,
        work: impl FnOnce(&mut Learner) -> Result<T, LearnerError> + Send,
    ) -> Result<T, LearnerError> {
        match self.pool.clone() {
            Some(pool) => pool.install(|| work(self)),
            None => work(self),
        }
    }
}

fn gradients(loss: &Tensor) -> Result<GradStore, LearnerError> {
    let value = number(loss)?;
    if !value.is_finite() {
        return Err(LearnerError::NotFinite(value));
    }
    Ok(loss.backward()?)
}

/// The parameters that utilities depend on.
fn imitated(parameters: &Parameters) -> impl Iterator<Item = (&str, &Var)> + Clone {
    parameters.iter().filter(|(name, _)| !name.starts_with(PAYOFF) && !name.starts_with(STATE))
}

fn inference(
    parameters: &Parameters,
    settings: &LearnerSettings,
    scales: &FeatureScales,
) -> Result<Arc<AgentInference>, LearnerError> {
    let tensors = parameters.values()?;
    Ok(Arc::new(AgentInference::of(&StoredTensors(&tensors), settings.variant, scales)?))
}

//! Learning of interference without threads: for simulations, which have one thread and a clock of their
//! own.
//!
//! The trainer, the refits and the versions are those of the daemon. What the daemon does beside each other
//! happens here one after the other: a refit takes no simulated time.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{
    ColocationHistory, Interference, InterferenceContext, MeasuredSet, ObservedSample,
};
use cohabit_types::{ColocationSample, Demand, JobId, Span, Time};

use super::base_predictor::{AdaptableModel, BasePredictor};
use super::samples::resolve_sample;
use super::trainer::{Trainer, TrainerOptions, TrainingUpdate};
use crate::{HeadOptions, InterferenceSource};

/// Makes the model after these sets from the model that a learner starts with; it does not change that one.
pub type ModelAdapter = Arc<dyn Fn(&[MeasuredSet]) -> Arc<dyn Interference> + Send + Sync>;

/// What a learner starts with.
#[derive(Clone)]
pub struct LearnerOptions {
    /// Where the predictor comes from.
    pub source: InterferenceSource,
    /// The predictor, what was measured of jobs alone, and the limit of slowdowns.
    pub knowledge: InterferenceContext,
    /// Adapts the predictor to observed sets, if it is a model.
    pub adapter: Option<ModelAdapter>,
    /// The shortest time between two updates.
    pub learn_every: Span,
    /// An empty directory for the versions of the model.
    pub folder: PathBuf,
}

/// Learns interference from the co-location samples of workers, as the head daemon does.
pub struct InterferenceLearner {
    trainer: Trainer,
    options: LearnerOptions,
    /// Samples for the next update.
    pending: Vec<ObservedSample>,
    /// Not before this time is the policy updated again.
    next_update_at: Time,
}

impl InterferenceLearner {
    /// A learner without any experience. A refit is due after as many new samples as by default in a daemon.
    #[must_use]
    pub fn new(options: LearnerOptions) -> InterferenceLearner {
        let model = options
            .adapter
            .clone()
            .map(|adapter| -> Arc<dyn AdaptableModel> { Arc::new(AdaptedModel { adapter }) });
        let base = BasePredictor {
            source: options.source.clone(),
            interference: Arc::clone(&options.knowledge.interference),
            solos: Arc::clone(&options.knowledge.solos),
            model,
            ..BasePredictor::analytic()
        };
        let trainer = Trainer::open(TrainerOptions {
            base,
            experience: ColocationHistory::default(),
            max_slowdown: options.knowledge.max_slowdown,
            refit_after: HeadOptions::new(&options.folder).refit_after,
            folder: options.folder.clone(),
        });
        InterferenceLearner { trainer, options, pending: Vec::new(), next_update_at: Time::EPOCH }
    }

    /// Learns from samples, whose jobs `lookup` describes. Returns what policies know from now on, if that has
    /// changed enough.
    pub fn observe(
        &mut self,
        now: Time,
        samples: &[ColocationSample],
        lookup: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext> {
        for sample in samples {
            let neighbors = sample.neighbors.iter().map(|rank| rank.attempt.job);
            let observed = resolve_sample(sample, neighbors, lookup, &self.options.knowledge.solos);
            self.pending.extend(observed);
        }
        if now < self.next_update_at || self.pending.is_empty() {
            return None;
        }
        let samples = std::mem::take(&mut self.pending);
        self.next_update_at = now + self.options.learn_every;
        let TrainingUpdate { knowledge, refit } = self.trainer.observe(&samples);
        let refitted = refit.and_then(|refit| {
            let better = refit.work().map(Box::new);
            self.trainer.finish_refit(better).knowledge
        });
        refitted.or(knowledge)
    }

    /// The number of models that were fitted and found better than the one before.
    #[must_use]
    pub fn versions(&self) -> usize {
        self.trainer.version_count()
    }
}

/// A model that its owner knows how to adapt.
struct AdaptedModel {
    adapter: ModelAdapter,
}

impl AdaptableModel for AdaptedModel {
    fn adapted_to(&self, sets: &[MeasuredSet]) -> Arc<dyn Interference> {
        (self.adapter)(sets)
    }
}

impl fmt::Debug for AdaptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdaptedModel")
    }
}

//! Learning of interference without threads: for simulations, which have one thread and a clock of their
//! own.
//!
//! The trainer, the refits and the versions are those of the daemon. What the daemon does beside each other
//! happens here one after the other: a refit takes no simulated time.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use cohabit_policy::JobTraits;
use cohabit_policy::interference::{ColocationHistory, Interference, InterferenceContext, MeasuredSet};
use cohabit_scheduler_core::MemoryMisfit;
use cohabit_types::{ColocationSample, Demand, JobId, Span, Time};

use super::base_predictor::{AdaptableModel, BasePredictor};
use super::observation::Observation;
use super::samples::{resolve_misfit, resolve_sample};
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
    /// Observations for the next update.
    pending: Vec<Observation>,
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
        let mut base = BasePredictor::analytic();
        base.source = options.source.clone();
        base.interference = Arc::clone(&options.knowledge.interference);
        base.solos = Arc::clone(&options.knowledge.solos);
        base.model = model;
        let trainer = Trainer::open(TrainerOptions {
            base,
            experience: ColocationHistory::default(),
            max_slowdown: options.knowledge.max_slowdown,
            refit_after: HeadOptions::new(&options.folder).refit_after,
            folder: options.folder.clone(),
        });
        InterferenceLearner { trainer, options, pending: Vec::new(), next_update_at: Time::EPOCH }
    }

    /// Learns from samples, whose jobs `lookup` describes. Returns what policies know from now on, if that
    /// has changed enough.
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
        self.update(now)
    }

    /// Learns at once that a rank found no memory left, or the next plan would try the same again. Returns
    /// what policies know from now on, if that has changed.
    pub fn observe_misfit(
        &mut self,
        now: Time,
        misfit: &MemoryMisfit,
        lookup: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext> {
        self.pending.push(resolve_misfit(misfit, lookup, &self.options.knowledge.solos)?);
        self.update(now)
    }

    /// Passes all observations to the trainer.
    fn update(&mut self, now: Time) -> Option<InterferenceContext> {
        let observations = std::mem::take(&mut self.pending);
        self.next_update_at = now + self.options.learn_every;
        let TrainingUpdate { knowledge, refit, .. } = self.trainer.observe(&observations);
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

#[cfg(test)]
mod tests {
    use cohabit_policy::interference::{ColocationEstimate, ColocationSet, GpuKind, SetMember};
    use cohabit_types::{DeviceId, ModelDescription, SharingStrategy};

    use super::*;

    fn learner(folder: &std::path::Path) -> InterferenceLearner {
        InterferenceLearner::new(LearnerOptions {
            source: InterferenceSource::Law,
            knowledge: InterferenceContext::default(),
            adapter: None,
            learn_every: Span::from_secs(60),
            folder: folder.to_owned(),
        })
    }

    /// A sample of 600 s of job `number`, which trains the model `m<number>`, beside these jobs.
    fn sample(number: u64, rate: f64, neighbors: &[u64]) -> ColocationSample {
        let rank = |number: u64| JobId::new(number).attempt(1).rank(0);
        ColocationSample {
            rank: rank(number),
            device: DeviceId("node-0".into()),
            gpu: "V100".into(),
            sharing: SharingStrategy::Mps,
            neighbors: neighbors.iter().map(|number| rank(*number)).collect(),
            from: Time::EPOCH,
            to: Time::EPOCH + Span::from_secs(600),
            steps: (rate * 600.0) as u64,
            rate,
            memory: None,
            utilization: None,
        }
    }

    fn lookup(job: JobId) -> Option<(Demand, Arc<JobTraits>)> {
        let model =
            ModelDescription { name: Some(format!("m{}", job.number)), ..ModelDescription::default() };
        let traits = JobTraits { user: "ada".into(), model: Some(model), ..JobTraits::default() };
        Some((Demand::default(), Arc::new(traits)))
    }

    /// What policies expect of the jobs 1 and 2 beside each other.
    fn estimates(knowledge: &InterferenceContext) -> Vec<ColocationEstimate> {
        let member = |model: &str| SetMember { model: model.into(), ..SetMember::default() };
        let set = ColocationSet {
            gpu: GpuKind::named("V100"),
            sharing: Some(SharingStrategy::Mps),
            members: vec![member("m1"), member("m2")],
        };
        knowledge.interference.predict(&[set]).remove(0)
    }

    fn slowdowns(knowledge: &InterferenceContext) -> Vec<f64> {
        estimates(knowledge).iter().map(|estimate| estimate.slowdown).collect()
    }

    #[test]
    fn what_workers_measured_is_what_policies_know() {
        let folder = tempfile::tempdir().unwrap();
        let mut learner = learner(folder.path());
        let samples = [sample(1, 10.0, &[]), sample(2, 4.0, &[]), sample(1, 8.0, &[2]), sample(2, 1.6, &[1])];
        let knowledge = learner.observe(Time::EPOCH, &samples, &lookup).expect("all of it is new");
        let learned = slowdowns(&knowledge);
        assert!((learned[0] - 1.25).abs() < 1e-6 && (learned[1] - 2.5).abs() < 1e-6, "{learned:?}");
        assert_eq!(learner.versions(), 0, "four samples are too few for a model");
    }

    #[test]
    fn updates_are_as_rare_as_asked_and_only_news_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut learner = learner(folder.path());
        let mut observe = |secs: u64, sample| {
            learner.observe(Time::EPOCH + Span::from_secs(secs), &[sample], &lookup).is_some()
        };
        assert!(observe(0, sample(1, 10.0, &[])));
        assert!(!observe(30, sample(2, 4.0, &[])), "too early");
        assert!(observe(60, sample(1, 10.0, &[])), "it knows of the second job, too");
        assert!(!observe(120, sample(1, 10.0, &[])), "nothing is new");
    }

    #[test]
    fn a_misfit_is_learned_at_once_with_the_samples_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut learner = learner(folder.path());
        assert!(learner.observe(Time::EPOCH, &[sample(1, 10.0, &[])], &lookup).is_some());
        let soon = Time::EPOCH + Span::from_secs(1);
        assert!(learner.observe(soon, &[sample(2, 4.0, &[])], &lookup).is_none(), "too early");
        let ColocationSample { rank, device, gpu, sharing, to, .. } = sample(1, 8.0, &[2]);
        let misfit = MemoryMisfit { rank, device, gpu, sharing, neighbors: vec![JobId::new(2)], at: to };
        let knowledge = learner.observe_misfit(soon, &misfit, &lookup).expect("it is new");
        assert!(estimates(&knowledge).iter().all(|estimate| estimate.fits == 0.0));
        assert_eq!(knowledge.solos.iter().count(), 2, "the sample that waited was learned too");
        assert!(learner.observe_misfit(soon, &misfit, &lookup).is_none(), "nothing is new");
        assert!(learner.observe_misfit(soon, &misfit, &|_| None).is_none(), "nobody knows the jobs");
    }

    #[test]
    fn samples_of_unknown_jobs_teach_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let known = learner(folder.path()).observe(Time::EPOCH, &[sample(1, 10.0, &[])], &|_| None);
        assert!(known.is_none());
    }
}

//! Learning of interference while a simulation runs: the trainer of the head daemon gets the samples of the
//! simulated workers.

use std::sync::Arc;

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_head::{InterferenceLearner, InterferenceSource, LearnerOptions, ModelAdapter};
use cohabit_predict::interference::Model;
use cohabit_sim::maifs::Agents;
use cohabit_sim::workload::Measurements;
use cohabit_sim::{
    ColocationLearner, Evaluation, EvaluationError, EvaluationResult, InterferenceContext, JobTraits,
    MemoryMisfit, Observer, evaluate_agents, evaluate_learning,
};
use cohabit_types::{ColocationSample, Demand, JobId, Span, Time};

use super::interference::{load_model, with_measured_sharing};
use crate::simulate::arguments::Predictor;

/// The shortest simulated time between two updates of a policy. A daemon waits for five seconds, which would
/// cost a simulation more time than it changes plans.
const LEARN_EVERY: Span = Span::from_secs(60);

/// What every run with --learn-online starts with.
pub(super) struct OnlineLearning {
    source: InterferenceSource,
    knowledge: InterferenceContext,
    /// Adapts the predictor, if it is a model.
    adapter: Option<ModelAdapter>,
}

impl OnlineLearning {
    /// Prepares the predictor to be learned from.
    pub(super) fn of(
        predictor: &Predictor,
        measurements: Option<&Measurements>,
        knowledge: &InterferenceContext,
    ) -> Result<OnlineLearning, CommandError> {
        let (source, adapter) = match predictor {
            Predictor::Law | Predictor::None => (InterferenceSource::Law, None),
            Predictor::Pretrained => {
                (InterferenceSource::Pretrained, Some(adapter("pretrained".as_ref(), measurements)?))
            }
            Predictor::Model(folder) => {
                (InterferenceSource::Model(folder.clone()), Some(adapter(folder, measurements)?))
            }
            Predictor::Truth => {
                let message = "--learn-online has nothing to learn with --predictor truth: choose law, pretrained, \
                               none or model:DIR";
                return Err(CommandError::new(CommandErrorKind::Usage, message));
            }
        };
        Ok(OnlineLearning { source, knowledge: knowledge.clone(), adapter })
    }

    /// Runs an evaluation that learns, from the beginning. Also returns how many models replaced the one
    /// before.
    pub(super) fn evaluate(
        &self,
        evaluation: Evaluation,
        observer: &mut dyn Observer,
        agents: Option<Box<dyn Agents>>,
    ) -> Result<(EvaluationResult, usize), CommandError> {
        let folder = tempfile::tempdir()
            .map_err(|error| CommandError::from_error(CommandErrorKind::InputOutput, &error))?;
        let mut learner = DaemonTrainer(InterferenceLearner::new(LearnerOptions {
            source: self.source.clone(),
            knowledge: self.knowledge.clone(),
            adapter: self.adapter.clone(),
            learn_every: LEARN_EVERY,
            folder: folder.path().to_owned(),
        }));
        let evaluated = match agents {
            Some(agents) => evaluate_agents(evaluation, observer, Some(&mut learner), agents),
            None => evaluate_learning(evaluation, observer, &mut learner),
        };
        let evaluated = evaluated
            .map_err(|error: EvaluationError| CommandError::from_error(CommandErrorKind::Internal, &error))?;
        Ok((evaluated, learner.0.versions()))
    }
}

fn adapter(
    folder: &std::path::Path,
    measurements: Option<&Measurements>,
) -> Result<ModelAdapter, CommandError> {
    let model: Arc<dyn Model> = load_model(folder)?;
    let measurements = measurements.cloned();
    Ok(Arc::new(move |sets| match &measurements {
        Some(measured) => {
            let adapted = Arc::from(model.adapted(&measured.in_measured_sharing(sets)));
            with_measured_sharing(adapted, Some(measured))
        }
        None => Arc::from(model.adapted(sets)),
    }))
}

/// The trainer of the head daemon as the learner of an evaluation.
struct DaemonTrainer(InterferenceLearner);

impl ColocationLearner for DaemonTrainer {
    fn observe(
        &mut self,
        now: Time,
        samples: &[ColocationSample],
        lookup: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext> {
        self.0.observe(now, samples, lookup)
    }

    fn observe_misfit(
        &mut self,
        now: Time,
        misfit: &MemoryMisfit,
        lookup: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext> {
        self.0.observe_misfit(now, misfit, lookup)
    }
}

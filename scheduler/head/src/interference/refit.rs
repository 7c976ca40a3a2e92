//! A refit: fits new models to the observed sets. The best becomes a version if it is better than the current
//! model, beyond noise, on sets that neither of them has learned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_policy::interference::{Interference, MeasuredSet, ObservedSet, SetOutcome};
use cohabit_types::{ModelRecord, Time};
use tokio::sync::oneshot;

use super::base_predictor::BasePredictor;
use super::candidate::CandidateModel;
use super::guarded_model::GuardedModel;
use super::models::train_candidates;
use super::paired_comparison::{PairedComparison, errors};
use super::samples::member_count;
use super::validation_split::ValidationSplit;
use crate::clock::wall_clock;

/// The input of a refit; it moves to another thread.
#[derive(Debug)]
pub(crate) struct Refit {
    /// The observed sets, the oldest first.
    pub(super) sets: Vec<ObservedSet>,
    pub(super) base: BasePredictor,
    /// The model in use.
    pub(super) current: GuardedModel,
    /// Until when that model, or the base, may have learned sets that judge others.
    pub(super) learned_until: Option<Time>,
    /// The number of the version that the result may become.
    pub(super) version: u32,
    /// The directory of that version.
    pub(super) folder: PathBuf,
}

/// A model with a lower error than the current one.
#[derive(Debug)]
pub(crate) struct BetterModel {
    pub(super) record: ModelRecord,
    pub(super) model: Arc<dyn Interference>,
}

impl Refit {
    /// Runs on a thread of its own; the result is `None` if no better model was found.
    pub(crate) fn run_on_thread(self) -> oneshot::Receiver<Option<Box<BetterModel>>> {
        let (done, answer) = oneshot::channel();
        let work = move || {
            let better = catch_unwind(AssertUnwindSafe(|| self.work()));
            if better.is_err() {
                tracing::error!("no interference model was trained: the training panicked");
            }
            // A head that has ended needs no model.
            let _ = done.send(better.unwrap_or_default().map(Box::new));
        };
        if let Err(error) = std::thread::Builder::new().name("refit".to_owned()).spawn(work) {
            tracing::warn!(%error, "no interference model is trained: no thread could be started");
        }
        answer
    }

    /// The best new model, if it is better than the current one beyond noise.
    pub(super) fn work(self) -> Option<BetterModel> {
        let ValidationSplit { learned, judged } = ValidationSplit::of(self.sets, self.learned_until);
        // Models are compared by slowdowns, which a set that did not fit has not.
        let judged: Vec<MeasuredSet> =
            judged.into_iter().filter(|it| it.outcome != SetOutcome::DidNotFit).collect();
        let candidates = train_candidates(&self.base, &learned);
        let compared = candidates.len();
        let before = errors(&self.current, &judged);
        let compare = |candidate: Box<dyn CandidateModel>| {
            let comparison = PairedComparison::of(&before, &errors(candidate.model(), &judged));
            comparison.error.is_finite().then_some((comparison, candidate))
        };
        let (comparison, best) = candidates
            .into_iter()
            .filter_map(compare)
            .min_by(|(one, _), (other, _)| one.error.total_cmp(&other.error))?;
        let PairedComparison { error, error_before, chance } = comparison;
        let (kind, samples, judged) = (best.kind(), member_count(&learned), member_count(&judged));
        tracing::info!(
            kind,
            error,
            error_before,
            chance,
            samples,
            judged,
            "an interference model was trained"
        );
        if !comparison.is_improvement(compared) {
            return None;
        }
        let record = ModelRecord {
            version: self.version,
            kind,
            base: self.base.source.to_string(),
            trained_at: wall_clock(),
            rows: samples,
            validation_rows: judged,
            error,
            error_before,
        };
        save_candidate(best, record, &self.folder)
    }
}

fn save_candidate(best: Box<dyn CandidateModel>, record: ModelRecord, folder: &Path) -> Option<BetterModel> {
    match best.save(folder) {
        Ok(model) => Some(BetterModel { record, model }),
        Err(error) => {
            tracing::warn!(error, "a better interference model cannot be saved and is not used");
            None
        }
    }
}

//! A refit: fits new models to the observed sets. The best becomes a version if its error on the newest
//! sets is lower than the current model's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_policy::interference::{Interference, MeasuredSet, ObservedSet};
use cohabit_types::ModelRecord;
use tokio::sync::oneshot;

use super::base_predictor::BasePredictor;
use super::candidate::CandidateModel;
use super::guarded_model::GuardedModel;
use super::models::{error_of, train_candidates};
use super::samples::member_count;
use crate::clock::wall_clock;

/// One set in this many is held back for validation: the newest ones.
const HOLDOUT_ONE_IN: usize = 5;

/// At most this many of the newest sets are used: the cost of training and of predicting grows with them.
const MAX_SETS: usize = 400;

/// The input of a refit; it moves to another thread.
#[derive(Debug)]
pub(crate) struct Refit {
    /// The observed sets, the oldest first.
    pub(super) sets: Vec<ObservedSet>,
    pub(super) base: BasePredictor,
    /// The model in use.
    pub(super) current: GuardedModel,
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

    /// The best new model, if it is better than the current one.
    pub(super) fn work(self) -> Option<BetterModel> {
        let newest = self.sets.len().saturating_sub(MAX_SETS);
        let measured: Vec<MeasuredSet> = self.sets.into_iter().skip(newest).map(|it| it.measured).collect();
        let held_back = measured.len() / HOLDOUT_ONE_IN;
        let (train, validation) = measured.split_at(measured.len() - held_back);
        let error_before = error_of(&self.current, validation)?;
        let judged = train_candidates(&self.base, train).into_iter().filter_map(|candidate| {
            let error = error_of(candidate.model(), validation).filter(|it| it.is_finite())?;
            Some((error, candidate))
        });
        let (error, best) = judged.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let kind = best.kind();
        tracing::info!(
            kind,
            error,
            error_before,
            samples = member_count(train),
            "an interference model was trained"
        );
        if error >= error_before {
            return None;
        }
        let record = ModelRecord {
            version: self.version,
            kind,
            base: self.base.source.to_string(),
            trained_at: wall_clock(),
            rows: member_count(train),
            validation_rows: member_count(validation),
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

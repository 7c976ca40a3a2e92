//! A refit: new models of what was lived through, of which the best becomes a version if it errs less than
//! the current one on what came last.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_policy::interference::{Interference, MeasuredSet, ObservedSet};
use cohabit_types::ModelRecord;
use tokio::sync::oneshot;

use super::Base;
use super::base::source::{CandidateModel, error_of, train_candidates};
use super::guarded::GuardedModel;
use crate::clock::wall_clock;

/// One set in so many, of those that were seen last, is held back to judge by.
const HOLDOUT_ONE_IN: usize = 5;

/// It goes by so many of the newest sets: what a model costs to learn and to ask grows with them.
const MOST_SETS: usize = 400;

/// All that a refit needs; it may go to another thread.
#[derive(Debug)]
pub(crate) struct Refit {
    /// What was lived through, the oldest first.
    pub(super) sets: Vec<ObservedSet>,
    pub(super) base: Base,
    /// What is gone by now.
    pub(super) current: GuardedModel,
    /// The number of the version that it may become.
    pub(super) version: u32,
    /// Where that is kept.
    pub(super) folder: PathBuf,
}

/// A model that errs less than the one before it.
#[derive(Debug)]
pub(crate) struct BetterModel {
    pub(super) record: ModelRecord,
    pub(super) model: Arc<dyn Interference>,
}

impl Refit {
    /// Does it on a thread of its own; the answer is none where nothing better was found.
    pub(crate) fn run_on_thread(self) -> oneshot::Receiver<Option<Box<BetterModel>>> {
        let (done, answer) = oneshot::channel();
        let work = move || {
            let better = catch_unwind(AssertUnwindSafe(|| self.work()));
            if better.is_err() {
                tracing::error!("a model of interference was not learned: it panicked over its training");
            }
            // A head that has ended wants no model.
            let _ = done.send(better.unwrap_or_default().map(Box::new));
        };
        if let Err(error) = std::thread::Builder::new().name("refit".to_owned()).spawn(work) {
            tracing::warn!(%error, "models of interference are not learned: no thread could be started");
        }
        answer
    }

    /// The best of what can be learned, if it is better than what there is.
    pub(super) fn work(self) -> Option<BetterModel> {
        let newest = self.sets.len().saturating_sub(MOST_SETS);
        let measured: Vec<MeasuredSet> = self.sets.into_iter().skip(newest).map(|it| it.measured).collect();
        let held_back = measured.len() / HOLDOUT_ONE_IN;
        let (train, judge) = measured.split_at(measured.len() - held_back);
        let error_before = error_of(&self.current, judge)?;
        let judged = train_candidates(&self.base, train).into_iter().filter_map(|attempt| {
            let error = error_of(attempt.model(), judge).filter(|it| it.is_finite())?;
            Some((error, attempt))
        });
        let (error, best) = judged.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let kind = best.kind();
        tracing::info!(kind, error, error_before, rows = rows(train), "a model of interference was learned");
        if error >= error_before {
            return None;
        }
        let record = ModelRecord {
            version: self.version,
            kind,
            base: self.base.basis.to_string(),
            trained_at: wall_clock(),
            rows: rows(train),
            judged_on: rows(judge),
            error,
            error_before,
        };
        save_candidate(best, record, &self.folder)
    }
}

fn save_candidate(best: CandidateModel, record: ModelRecord, folder: &Path) -> Option<BetterModel> {
    match best.keep(folder) {
        Ok(model) => Some(BetterModel { record, model }),
        Err(error) => {
            tracing::warn!(error, "a better model of interference cannot be kept, and is not used");
            None
        }
    }
}

/// Members of the sets.
pub(super) fn rows<'a>(sets: impl IntoIterator<Item = &'a MeasuredSet>) -> u64 {
    sets.into_iter().map(|it| it.set.members.len() as u64).sum()
}

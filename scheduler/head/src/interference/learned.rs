//! Models: read from files, learned from what was lived through, kept in a version's folder and restored.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use cohabit_policy::interference::{Interference, MeasuredSet, MeasuredTable, SoloMetricsTable};
use cohabit_predict::interference::{
    DatasetSummary, MeasurementFormat, Model, ModelCard, ModelTrainer, StoredModel, evaluate, kind_by_name,
    pretrained, read as read_table,
};
use cohabit_types::ModelRecord;

use super::versions::write;
use super::{Base, InterferenceSource, refit};
use crate::HeadError;

/// A model that can learn more.
pub(crate) type AnyModel = dyn Model;

/// The kind that learns much from little.
const KIND: &str = "gaussian";
/// Fewer rows are too few to learn a whole model from.
const LEAST_ROWS: u64 = 30;
/// Everything that is drawn.
const SEED: u64 = 1;
/// The sets that a model was adapted to.
const OBSERVED_SETS_FILE: &str = "lived.json";

/// A model that was just learned.
#[derive(Debug)]
pub(crate) enum CandidateModel {
    /// The base after these sets.
    Adapted(Vec<MeasuredSet>, Arc<dyn Interference>),
    /// A new one.
    Trained(Box<StoredModel>),
}

pub(super) fn read(basis: &InterferenceSource) -> Result<Base, HeadError> {
    let model = |stored: StoredModel| {
        let model: Arc<AnyModel> = Arc::from(stored.model);
        Base { basis: basis.clone(), interference: model.clone(), solos: Arc::default(), model: Some(model) }
    };
    match basis {
        InterferenceSource::Law => Ok(Base::law()),
        InterferenceSource::Pretrained => pretrained().map(model).map_err(HeadError::unusable(basis)),
        InterferenceSource::Table(path) => table(basis, path),
        InterferenceSource::Model(folder) => {
            StoredModel::load(folder).map(model).map_err(HeadError::unusable(basis))
        }
    }
}

fn table(basis: &InterferenceSource, path: &Path) -> Result<Base, HeadError> {
    let file = File::open(path).map_err(HeadError::unusable(basis))?;
    let measured = read_table(file, MeasurementFormat::ColocationSet).map_err(HeadError::unusable(basis))?;
    Ok(Base {
        basis: basis.clone(),
        interference: Arc::new(MeasuredTable::of(&measured)),
        solos: Arc::new(SoloMetricsTable::of(&measured)),
        model: None,
    })
}

/// The model of a version.
pub(super) fn restore(
    folder: &Path,
    record: &ModelRecord,
    base: &Base,
) -> Result<Arc<dyn Interference>, String> {
    let lived = folder.join(OBSERVED_SETS_FILE);
    if !lived.exists() {
        return trained(folder);
    }
    let now = base.basis.to_string();
    let Some(model) = base.model.as_ref().filter(|_| record.base == now) else {
        return Err(format!("it was learned upon '{}', and the head was started with '{now}'", record.base));
    };
    let text = fs::read(&lived).map_err(|error| format!("{}: {error}", lived.display()))?;
    let sets: Vec<MeasuredSet> =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", lived.display()))?;
    Ok(Arc::from(model.adapted(&sets)))
}

fn trained(folder: &Path) -> Result<Arc<dyn Interference>, String> {
    let model: Arc<AnyModel> = Arc::from(StoredModel::load(folder).map_err(|error| error.to_string())?.model);
    Ok(model)
}

/// What can be learned from these sets.
pub(super) fn train_candidates(base: &Base, sets: &[MeasuredSet]) -> Vec<CandidateModel> {
    let adapted =
        base.model.as_ref().map(|it| CandidateModel::Adapted(sets.to_vec(), Arc::from(it.adapted(sets))));
    let new = if refit::rows(sets) < LEAST_ROWS { None } else { learn(sets) };
    adapted.into_iter().chain(new.map(Box::new).map(CandidateModel::Trained)).collect()
}

fn learn(sets: &[MeasuredSet]) -> Option<StoredModel> {
    let training = ModelTrainer { kind: kind_by_name(KIND).ok()?, seed: SEED, epochs: None };
    let learned = training.train(sets, &mut |_| {});
    let model = learned.inspect_err(|error| tracing::warn!(%error, "no model could be learned")).ok()?;
    let card = ModelCard {
        model: KIND.to_owned(),
        cohabit: env!("CARGO_PKG_VERSION").to_owned(),
        command: "learned by the head".to_owned(),
        seed: SEED,
        data: DatasetSummary::of(
            "what this cluster lived through".to_owned(),
            MeasurementFormat::ColocationSet,
            sets,
        ),
        features: model.features(),
        training: evaluate(&*model, sets),
        ..ModelCard::default()
    };
    Some(StoredModel { card, model })
}

/// The mean absolute error of the slowdown as a part of the measured one; none where nothing was measured.
pub(super) fn error_of(model: &dyn Interference, measured: &[MeasuredSet]) -> Option<f64> {
    evaluate(model, measured).mape_slowdown
}

impl CandidateModel {
    pub(super) fn kind(&self) -> String {
        match self {
            CandidateModel::Adapted(..) => "adapted".to_owned(),
            CandidateModel::Trained(stored) => stored.card.model.clone(),
        }
    }

    pub(super) fn model(&self) -> &dyn Interference {
        match self {
            CandidateModel::Adapted(_, model) => &**model,
            CandidateModel::Trained(stored) => &*stored.model,
        }
    }

    /// Puts it into a folder. A new model is the one that is found there afterwards.
    pub(super) fn keep(self, folder: &Path) -> Result<Arc<dyn Interference>, String> {
        let refused = |error: &dyn std::error::Error| format!("{}: {error}", folder.display());
        // What an earlier try may have left.
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(|error| refused(&error))?;
        }
        fs::create_dir_all(folder).map_err(|error| refused(&error))?;
        match self {
            CandidateModel::Adapted(sets, model) => {
                let text = serde_json::to_vec(&sets).map_err(|error| refused(&error))?;
                write(&folder.join(OBSERVED_SETS_FILE), &text).map_err(|error| refused(&error))?;
                Ok(model)
            }
            CandidateModel::Trained(stored) => {
                stored.save(folder).map_err(|error| refused(&error))?;
                trained(folder)
            }
        }
    }
}

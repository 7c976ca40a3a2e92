//! Trained models: read from files, fitted to observed sets, saved to a version's directory and restored from
//! it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_policy::interference::{Interference, MeasuredSet, MeasuredTable, SoloMetricsTable};
use cohabit_predict::interference::{
    DatasetSummary, MeasurementFormat, Model, ModelCard, ModelTrainer, StoredModel, evaluate, kind_by_name,
    pretrained, read as read_table,
};
use cohabit_types::{ModelRecord, Time};

use super::base_predictor::{AdaptableModel, BasePredictor};
use super::candidate::CandidateModel;
use super::model_versions::write_atomically;
use super::samples::member_count;
use crate::HeadError;
use crate::clock::wall_clock;
use crate::interference_source::InterferenceSource;

/// The kind of model that learns most from few samples.
const KIND: &str = "gaussian";
/// With fewer samples no new model is trained.
const LEAST_SAMPLES: u64 = 30;
/// The seed of all random draws of a training.
const SEED: u64 = 1;
/// The sets that a base model was adapted to.
const OBSERVED_SETS_FILE: &str = "lived.json";

/// Reads the predictor that the operator chose.
///
/// # Errors
/// Where its file cannot be read, or does not make sense.
pub(crate) fn read_base_predictor(source: &InterferenceSource) -> Result<BasePredictor, HeadError> {
    let base = |stored: StoredModel, learned_until: Option<Time>| {
        let model: Arc<dyn Model> = Arc::from(stored.model);
        let adaptable: Arc<dyn AdaptableModel> = Arc::new(TrainedModel(Arc::clone(&model)));
        BasePredictor {
            source: source.clone(),
            interference: model,
            solos: Arc::default(),
            learned_until,
            model: Some(adaptable),
        }
    };
    match source {
        InterferenceSource::Law => Ok(BasePredictor::analytic()),
        // Public measurements, none of them of this cluster.
        InterferenceSource::Pretrained => {
            pretrained().map(|stored| base(stored, None)).map_err(HeadError::unusable(source))
        }
        InterferenceSource::Table(path) => read_measured(source, path),
        InterferenceSource::Model(folder) => {
            let stored = StoredModel::load(folder).map_err(HeadError::unusable(source))?;
            Ok(base(stored, Some(written_at(folder))))
        }
    }
}

fn read_measured(source: &InterferenceSource, path: &Path) -> Result<BasePredictor, HeadError> {
    let file = File::open(path).map_err(HeadError::unusable(source))?;
    let measured = read_table(file, None).map_err(HeadError::unusable(source))?.sets;
    Ok(BasePredictor {
        source: source.clone(),
        interference: Arc::new(MeasuredTable::of(&measured)),
        solos: Arc::new(SoloMetricsTable::of(&measured)),
        learned_until: Some(written_at(path)),
        model: None,
    })
}

/// When a file, or a file in a folder, was last written; now, if the file system does not tell.
fn written_at(path: &Path) -> Time {
    let files = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let written = |path: PathBuf| fs::metadata(path).and_then(|it| it.modified()).ok();
    files.chain([path.to_owned()]).filter_map(written).max().map_or_else(wall_clock, Time::from)
}

/// A trained model that a base predictor is.
#[derive(Debug)]
struct TrainedModel(Arc<dyn Model>);

impl AdaptableModel for TrainedModel {
    fn adapted_to(&self, sets: &[MeasuredSet]) -> Arc<dyn Interference> {
        Arc::from(self.0.adapted(sets))
    }
}

/// The model of a version.
///
/// # Errors
/// What is wrong with its files, or that it was adapted from another base predictor.
pub(super) fn restore(
    folder: &Path,
    record: &ModelRecord,
    base: &BasePredictor,
) -> Result<Arc<dyn Interference>, String> {
    let observed = folder.join(OBSERVED_SETS_FILE);
    if !observed.exists() {
        return load(folder);
    }
    let now = base.source.to_string();
    let Some(model) = base.model.as_ref().filter(|_| record.base == now) else {
        return Err(format!("it was adapted from '{}', and the head was started with '{now}'", record.base));
    };
    let text = fs::read(&observed).map_err(|error| format!("{}: {error}", observed.display()))?;
    let sets: Vec<MeasuredSet> =
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", observed.display()))?;
    Ok(model.adapted_to(&sets))
}

fn load(folder: &Path) -> Result<Arc<dyn Interference>, String> {
    let model: Arc<dyn Model> =
        Arc::from(StoredModel::load(folder).map_err(|error| error.to_string())?.model);
    Ok(model)
}

/// The models that can be fitted to these sets: the base adapted to them, and a new one.
pub(super) fn train_candidates(base: &BasePredictor, sets: &[MeasuredSet]) -> Vec<Box<dyn CandidateModel>> {
    let mut candidates: Vec<Box<dyn CandidateModel>> = Vec::new();
    if let Some(model) = &base.model {
        candidates.push(Box::new(AdaptedCandidate { sets: sets.to_vec(), model: model.adapted_to(sets) }));
    }
    if member_count(sets) >= LEAST_SAMPLES
        && let Some(stored) = train(sets)
    {
        candidates.push(Box::new(NewCandidate(stored)));
    }
    candidates
}

fn train(sets: &[MeasuredSet]) -> Option<StoredModel> {
    let training = ModelTrainer { kind: kind_by_name(KIND).ok()?, seed: SEED, epochs: None };
    let trained = training.train(sets, &mut |_| {});
    let model = trained.inspect_err(|error| tracing::warn!(%error, "no model could be trained")).ok()?;
    let card = ModelCard {
        model: KIND.to_owned(),
        cohabit: env!("CARGO_PKG_VERSION").to_owned(),
        command: "trained by the head".to_owned(),
        seed: SEED,
        data: DatasetSummary::of(
            "co-location samples of this cluster".to_owned(),
            MeasurementFormat::ColocationSet,
            sets,
        ),
        features: model.features(),
        training: evaluate(&*model, sets),
        ..ModelCard::default()
    };
    Some(StoredModel { card, model })
}

/// The base model after these sets.
struct AdaptedCandidate {
    sets: Vec<MeasuredSet>,
    model: Arc<dyn Interference>,
}

impl CandidateModel for AdaptedCandidate {
    fn kind(&self) -> String {
        "adapted".to_owned()
    }

    fn model(&self) -> &dyn Interference {
        &*self.model
    }

    fn save(self: Box<Self>, folder: &Path) -> Result<Arc<dyn Interference>, String> {
        save_in_new(folder, || {
            let text = serde_json::to_vec(&self.sets).map_err(in_folder(folder))?;
            write_atomically(&folder.join(OBSERVED_SETS_FILE), &text).map_err(in_folder(folder))?;
            Ok(self.model)
        })
    }
}

/// A model that was trained from scratch.
struct NewCandidate(StoredModel);

impl CandidateModel for NewCandidate {
    fn kind(&self) -> String {
        self.0.card.model.clone()
    }

    fn model(&self) -> &dyn Interference {
        &*self.0.model
    }

    /// Loads the saved model again, so that the head uses exactly what a restart will use.
    fn save(self: Box<Self>, folder: &Path) -> Result<Arc<dyn Interference>, String> {
        save_in_new(folder, || {
            self.0.save(folder).map_err(in_folder(folder))?;
            load(folder)
        })
    }
}

/// Creates the folder, and removes it again if the model cannot be saved there. A folder that exists is left
/// alone: it may be a version that this program cannot read.
fn save_in_new<T>(folder: &Path, save: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    fs::create_dir_all(folder.parent().unwrap_or(folder)).map_err(in_folder(folder))?;
    fs::create_dir(folder).map_err(in_folder(folder))?;
    save().inspect_err(|_| {
        if let Err(error) = fs::remove_dir_all(folder) {
            tracing::warn!(folder = %folder.display(), %error, "half a model stays on disk");
        }
    })
}

fn in_folder<E: std::error::Error>(folder: &Path) -> impl FnOnce(E) -> String + '_ {
    move |error| format!("{}: {error}", folder.display())
}

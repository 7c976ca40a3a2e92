//! Learned models of interference: how much jobs on one GPU slow each other down.
//!
//! Measurements come in by `measurements`, are divided by `split`, learned from by one of the `kinds`, scored
//! by `evaluate`, and kept in a folder by `stored`.

mod calibration;
mod chance;
mod cholesky;
mod evaluate;
mod expected;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gaussian;
mod kinds;
mod law;
mod low_rank;
mod measurements;
mod model;
mod networks;
mod pretrained;
mod ridge;
mod room;
mod split;
mod stored;
mod training;
mod usage;

pub use cohabit_policy::interference::{Interference, MeasuredSet};
pub use evaluate::{EvaluationAccumulator, PredictionMetrics, evaluate};
pub use gaussian::CorrectedModel;
pub use kinds::{UnknownModelKind, kind_by_name, kind_names};
pub use measurements::{MeasurementFormat, ReadError, read};
pub use model::{Epoch, Model, ModelKind, RestoreError, TrainError, TrainingData, Weights};
pub use pretrained::pretrained;
pub use split::{Fold, HoldOut, folds, held_back};
pub use stored::{DatasetSummary, FileAction, HeldOutMetrics, ModelCard, StoreError, StoredModel};
pub use training::ModelTrainer;

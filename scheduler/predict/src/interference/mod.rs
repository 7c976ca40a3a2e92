//! Learned models of interference: how much jobs that share a GPU slow each other down.
//!
//! `measurements` reads measured sets, `cross_validation` splits them, one of the `kinds` learns from them,
//! `evaluate` scores it, and `stored_model` keeps it in a directory. Start reading with `model`, which every
//! kind implements.

mod calibration;
mod cholesky;
mod cross_validation;
mod evaluate;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gaussian;
mod kinds;
mod law_prior;
mod log_slowdown;
mod low_rank;
mod measurements;
mod memory_fit;
mod model;
mod model_family;
mod model_trainer;
mod networks;
mod pretrained;
mod ridge;
mod slowdown_scale;
mod stored_model;
mod usage_model;
mod usage_source;

pub use cohabit_policy::interference::{Interference, MeasuredSet};
pub use cross_validation::{HoldOut, held_back};
pub use evaluate::{EvaluationAccumulator, PredictionMetrics, evaluate};
pub use kinds::{UnknownModelKind, kind_by_name, kind_names};
pub use measurements::{ColocationTable, MeasurementFormat, ReadError, read};
pub use model::{Epoch, Model, ModelKind, RestoreError, TrainError, TrainingData, Weights};
pub use model_trainer::ModelTrainer;
pub use pretrained::pretrained;
pub use stored_model::{DatasetSummary, HeldOutMetrics, ModelCard, StoreError, StoredModel};
pub use usage_source::{UsageSource, UsageSources};

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
pub use evaluate::{Figures, Tally, evaluate};
pub use gaussian::Corrected;
pub use kinds::{UnknownKind, kind_by_name, kind_names};
pub use measurements::{Format, ReadError, read};
pub use model::{Epoch, Lesson, Model, ModelKind, RestoreError, TrainError, Weights};
pub use pretrained::pretrained;
pub use split::{Fold, HoldOut, folds, held_back};
pub use stored::{Card, Data, HeldOut, StoreError, Stored};
pub use training::Training;

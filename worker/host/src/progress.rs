//! The progress of a rank: from JSON lines in its progress file, else from progress bars in its output.
//!
//! Whatever a program writes, what cannot be parsed is ignored and never an error.

mod bars;
mod file;
mod lines;
mod series;
mod tracker;

pub use bars::{BarParser, BarReading};
pub use file::{NewProgress, ProgressFile};
pub use lines::ProgressEntry;
#[cfg(feature = "fuzzing")]
pub(crate) use lines::read as read_lines;
pub use series::{SeriesWriter, read_series};
pub use tracker::ProgressTracker;

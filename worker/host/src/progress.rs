//! How far a rank is, from what it writes: JSON lines in its progress file, or else progress bars in its
//! output.
//!
//! Whatever a program writes is taken as well-meant: what cannot be understood is passed over, never an
//! error.

mod bars;
mod file;
mod lines;
mod tracker;

pub use bars::{BarParser, BarReading};
pub use file::ProgressFile;
pub use lines::ProgressEntry;
#[cfg(feature = "fuzzing")]
pub(crate) use lines::read as read_lines;
pub use tracker::ProgressTracker;

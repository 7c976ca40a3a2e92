//! Parts of records in words, the same in tables on a terminal and on pages.
//!
//! Nothing here prints or reads anything: the present time and the time zone come in as arguments.

pub mod change_results;
pub mod expected_times;
pub mod gpu_usage;
pub mod job_cells;
pub mod job_sheet;
pub mod parameters;
pub mod progress;
pub mod short_name;
pub mod time;

pub use self::time::{local_time, rfc3339};

//! Turns records into tables and sheets for users and into documents for scripts.
//!
//! Nothing here prints or reads anything. The properties of the screen come in as an argument.

pub(crate) mod actors_table;
pub(crate) mod application_documents;
pub(crate) mod applications_table;
pub(crate) mod change_results;
pub(crate) mod code_diff;
pub(crate) mod code_documents;
pub(crate) mod code_stat;
pub(crate) mod documents;
pub(crate) mod expected_times;
pub(crate) mod job_sheet;
pub(crate) mod jobs_table;
pub(crate) mod metrics;
pub(crate) mod model_documents;
pub(crate) mod models_table;
pub(crate) mod node_documents;
pub(crate) mod nodes_table;
pub(crate) mod objects_table;
pub(crate) mod parameters;
mod progress;
pub(crate) mod short_name;
mod silence;
pub(crate) mod states;
pub(crate) mod tasks_table;
mod time;
pub(crate) mod tokens_table;

#[cfg(feature = "demo")]
pub(crate) use self::progress::{metric_text, progress_text};
pub(crate) use self::silence::role;
pub(crate) use self::time::{local_time, rfc3339};

#[cfg(test)]
pub(crate) mod application_samples;
#[cfg(test)]
mod application_tests;
#[cfg(test)]
pub(crate) mod hostile_text;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

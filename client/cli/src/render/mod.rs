//! Turns records into tables and sheets for users and into documents for scripts.
//!
//! Nothing here prints or reads anything. The properties of the screen come in as an argument.

pub(crate) mod actors_table;
pub(crate) mod application_documents;
pub(crate) mod applications_table;
pub(crate) mod code_diff;
pub(crate) mod code_documents;
pub(crate) mod code_stat;
pub(crate) mod copy_document;
pub(crate) mod error_output;
pub(crate) mod explanation_document;
pub(crate) mod history_table;
pub(crate) mod jobs_table;
pub(crate) mod metrics;
pub(crate) mod model_documents;
pub(crate) mod models_table;
pub(crate) mod nodes_table;
pub(crate) mod objects_table;
pub(crate) mod plain_line;
pub(crate) mod report;
pub(crate) mod reservation_documents;
pub(crate) mod reservations_table;
pub(crate) mod share_documents;
pub(crate) mod share_table;
mod silence;
pub(crate) mod states;
pub(crate) mod sweep_rows;
pub(crate) mod tasks_table;
pub(crate) mod token_documents;
pub(crate) mod tokens_table;
pub(crate) mod usage_documents;

pub(crate) use self::silence::role;
#[cfg(feature = "demo")]
pub(crate) use cohabit_console::records::progress::{metric_text, progress_text};
pub(crate) use cohabit_console::records::{
    change_results, expected_times, job_cells, job_sheet, local_time, parameters, progress, rfc3339,
    short_name,
};

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

//! Documents on models of interference, for scripts.

use cohabit_client::types::{ModelRecord, Models};
use serde::Serialize;

use super::rfc3339;

/// `{"base", "current", "held", "sets", "rows", "trouble", "versions": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct ModelsDocument {
    base: String,
    current: Option<u32>,
    #[serde(rename = "held")]
    pinned: bool,
    sets: u64,
    rows: u64,
    #[serde(rename = "trouble")]
    failure: Option<String>,
    versions: Vec<ModelVersionDocument>,
}

/// A version. Errors are mean absolute percentage errors of slowdowns, as fractions.
#[derive(Debug, Serialize)]
struct ModelVersionDocument {
    version: u32,
    kind: String,
    base: String,
    trained_at: String,
    rows: u64,
    #[serde(rename = "judged_on")]
    validation_rows: u64,
    error: f64,
    error_before: f64,
}

impl From<&Models> for ModelsDocument {
    fn from(models: &Models) -> ModelsDocument {
        let Models { base, versions, current, pinned, sets, rows, failure } = models.clone();
        let versions = versions.iter().map(ModelVersionDocument::from).collect();
        ModelsDocument { base, current, pinned, sets, rows, failure, versions }
    }
}

impl From<&ModelRecord> for ModelVersionDocument {
    fn from(record: &ModelRecord) -> ModelVersionDocument {
        let ModelRecord { version, kind, base, trained_at, rows, validation_rows, error, error_before } =
            record.clone();
        ModelVersionDocument {
            trained_at: rfc3339(trained_at),
            version,
            kind,
            base,
            rows,
            validation_rows,
            error,
            error_before,
        }
    }
}

//! The format of `version.json`: the record of one version of the trained model.
//!
//! Its field `schema` is the version of the format; files without one have the first. `tests/golden` holds
//! what each schema wrote; those files are never changed, and every later release reads them.

use cohabit_types::{FormatVersion, ModelRecord, NewerVersion, Time};
use serde::{Deserialize, Serialize};

use super::validation_split::RULE;

/// The schema that is written, and the latest that is read.
const SCHEMA: FormatVersion = FormatVersion::new(1);

const REMEDY: &str = "start the newer version again to use this version of the model";

/// Why the record of a version cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum VersionFileError {
    /// A later version of Cohabit wrote it.
    #[error(transparent)]
    Newer(#[from] NewerVersion),
    /// It is damaged.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// A version as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredVersion {
    pub(super) record: ModelRecord,
    /// Until when it may have learned sets that judge others; `None` if it learned none of them.
    pub(super) learned_until: Option<Time>,
}

#[derive(Serialize, Deserialize)]
struct VersionFile {
    #[serde(default)]
    schema: FormatVersion,
    version: u32,
    kind: String,
    base: String,
    trained_at: Time,
    rows: u64,
    judged_on: u64,
    error: f64,
    error_before: f64,
    /// The rule by which sets were kept out of its training; releases without one kept the newest out.
    #[serde(default)]
    reserved_sets: Option<String>,
}

/// The part of every schema.
#[derive(Deserialize)]
struct SchemaField {
    #[serde(default)]
    schema: FormatVersion,
}

/// The text of a record.
pub(super) fn encode(record: &ModelRecord) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec_pretty(&VersionFile::from(record))
}

/// The record of any schema up to this one.
///
/// # Errors
/// When the file is of a later schema, or is not such a file.
pub(super) fn decode(text: &[u8]) -> Result<StoredVersion, VersionFileError> {
    let SchemaField { schema } = serde_json::from_slice(text)?;
    schema.check(SCHEMA, REMEDY)?;
    Ok(serde_json::from_slice::<VersionFile>(text)?.into())
}

impl From<&ModelRecord> for VersionFile {
    fn from(record: &ModelRecord) -> VersionFile {
        let ModelRecord { version, kind, base, trained_at, rows, validation_rows, error, error_before } =
            record.clone();
        VersionFile {
            schema: SCHEMA,
            version,
            kind,
            base,
            trained_at,
            rows,
            judged_on: validation_rows,
            error,
            error_before,
            reserved_sets: Some(RULE.to_owned()),
        }
    }
}

impl From<VersionFile> for StoredVersion {
    fn from(file: VersionFile) -> StoredVersion {
        let VersionFile { version, kind, base, trained_at, rows, judged_on, error, error_before, .. } = file;
        let learned_until = (file.reserved_sets.as_deref() != Some(RULE)).then_some(trained_at);
        let validation_rows = judged_on;
        let record =
            ModelRecord { version, kind, base, trained_at, rows, validation_rows, error, error_before };
        StoredVersion { record, learned_until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIEST: &str = include_str!("../../tests/golden/model-version-earliest.json");
    const SCHEMA_1: &str = include_str!("../../tests/golden/model-version-1.json");
    const RESERVED_SETS: &str = include_str!("../../tests/golden/model-version-1-reserved-sets.json");

    fn record() -> ModelRecord {
        ModelRecord {
            version: 7,
            kind: "gaussian".into(),
            base: "law".into(),
            trained_at: Time::from_micros(1_763_800_000_000_000),
            rows: 40,
            validation_rows: 10,
            error: 0.05,
            error_before: 0.125,
        }
    }

    #[test]
    fn files_of_all_releases_are_read_and_the_latest_schema_is_written() {
        let learned_until = Some(record().trained_at);
        for earlier in [EARLIEST, SCHEMA_1] {
            let stored = StoredVersion { record: record(), learned_until };
            assert_eq!(decode(earlier.as_bytes()).unwrap(), stored);
        }
        let stored = StoredVersion { record: record(), learned_until: None };
        assert_eq!(decode(RESERVED_SETS.as_bytes()).unwrap(), stored);
        assert_eq!(String::from_utf8(encode(&record()).unwrap()).unwrap(), RESERVED_SETS.trim_end());
    }

    #[test]
    fn a_version_with_another_rule_may_have_learned_any_set() {
        let other = RESERVED_SETS.replace(RULE, "another rule");
        assert_ne!(other, RESERVED_SETS);
        assert_eq!(decode(other.as_bytes()).unwrap().learned_until, Some(record().trained_at));
    }

    #[test]
    fn a_later_schema_is_refused_with_both_numbers_whatever_else_it_holds() {
        let refusal = decode(br#"{"schema":2,"version":"seven"}"#).unwrap_err().to_string();
        assert!(refusal.contains("version 2") && refusal.contains("reads 1 to 1"), "{refusal}");
        assert!(refusal.contains("start the newer version"), "{refusal}");
    }
}

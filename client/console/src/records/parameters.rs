//! The entries of members of an array from a file: keys of JSON objects are parameters, with a column each.

use cohabit_types::JobRecord;
use serde_json::{Map, Value};

use super::short_name::short_name;

/// The most columns; JSON has all parameters.
const MOST_COLUMNS: usize = 8;

/// The longest value in a table, in characters.
const LONGEST_VALUE: usize = 40;

/// The column of entries that are no objects.
const ENTRY: &str = "ENTRY";

/// The columns that a table of jobs has for their entries.
pub struct ParameterColumns(Vec<String>);

impl ParameterColumns {
    /// None where no job has an entry, one where an entry is no object, and else one for each key.
    pub fn of(jobs: &[JobRecord]) -> ParameterColumns {
        let entries: Vec<&String> = jobs.iter().filter_map(|job| job.labels.entry.as_ref()).collect();
        let Some(objects) = entries.iter().map(|entry| parameters(entry)).collect::<Option<Vec<_>>>() else {
            return ParameterColumns(vec![ENTRY.to_owned()]);
        };
        let mut keys: Vec<String> = Vec::new();
        for key in objects.iter().flat_map(Map::keys) {
            if keys.len() < MOST_COLUMNS && !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        ParameterColumns(keys)
    }

    /// The headings, without control characters.
    pub fn headings(&self) -> Vec<String> {
        self.0.iter().map(|key| short_name(key, LONGEST_VALUE)).collect()
    }

    /// The cells of a job.
    pub fn cells(&self, job: &JobRecord) -> Vec<String> {
        let entry = job.labels.entry.as_deref();
        let object = entry.and_then(parameters);
        let cell = |key: &String| match &object {
            Some(object) if key != ENTRY => object.get(key).map_or(String::new(), value_text),
            Some(_) | None => entry.unwrap_or_default().to_owned(),
        };
        self.0.iter().map(|key| short_name(&cell(key), LONGEST_VALUE)).collect()
    }
}

/// The parameters of an entry, if it is a JSON object.
pub fn parameters(entry: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(entry) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) | Err(_) => None,
    }
}

/// The entry in a line: `lr=0.1, batch=64`, or as it is.
pub fn entry_text(entry: &str) -> String {
    match parameters(entry) {
        Some(object) => {
            let pairs = object.iter().map(|(key, value)| format!("{key}={}", value_text(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        None => entry.to_owned(),
    }
}

fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

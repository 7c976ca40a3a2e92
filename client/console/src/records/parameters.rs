//! The entries of members of an array from a file: keys of JSON objects are parameters, with a column each.

use cohabit_types::entry_parameters;
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
    /// None where there is no entry, one where an entry is no object, and else one for each key.
    pub fn of<'a>(entries: impl Iterator<Item = &'a str>) -> ParameterColumns {
        let Some(objects) = entries.map(entry_parameters).collect::<Option<Vec<_>>>() else {
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

    /// The cells of a job with this entry.
    pub fn cells(&self, entry: Option<&str>) -> Vec<String> {
        let object = entry.and_then(entry_parameters);
        let cell = |key: &String| match &object {
            Some(object) if key != ENTRY => object.get(key).map_or(String::new(), value_text),
            Some(_) | None => entry.unwrap_or_default().to_owned(),
        };
        self.0.iter().map(|key| short_name(&cell(key), LONGEST_VALUE)).collect()
    }
}

/// The entry in a line: `lr=0.1, batch=64`, or as it is.
pub fn entry_text(entry: &str) -> String {
    match entry_parameters(entry) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[&str]) -> Vec<Vec<String>> {
        let columns = ParameterColumns::of(entries.iter().copied());
        let cells = entries.iter().map(|entry| columns.cells(Some(entry)));
        [vec![columns.headings()], cells.collect()].concat()
    }

    #[test]
    fn keys_of_objects_are_columns() {
        let found = table(&[r#"{"lr":0.1,"net":"a b"}"#, r#"{"seed":[1,2]}"#]);
        assert_eq!(found, [["lr", "net", "seed"], ["0.1", "a b", ""], ["", "", "[1,2]"]]);
        assert_eq!(entry_text(r#"{"lr":0.1,"net":"a"}"#), "lr=0.1, net=a");
    }

    #[test]
    fn other_entries_have_a_column_and_long_ones_are_cut() {
        assert_eq!(table(&["a", r#"{"lr":1}"#]), [["ENTRY"], ["a"], [r#"{"lr":1}"#]]);
        let long = table(&[&"x".repeat(99)]);
        assert_eq!(long[1][0].chars().count(), LONGEST_VALUE);
        assert_eq!(ParameterColumns::of(std::iter::empty()).headings(), Vec::<String>::new());
        let many: Vec<String> = (0..20).map(|key| format!("\"k{key}\":1")).collect();
        assert_eq!(table(&[&format!("{{{}}}", many.join(","))])[0].len(), MOST_COLUMNS);
    }
}

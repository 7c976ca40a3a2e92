//! Interference models: the model that the head uses when jobs share GPUs, and its versions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Time;

/// The interference model that the head is to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelChoice {
    /// The best: a new version replaces the present one when its error is smaller.
    Auto,
    /// The model that the head was started with, until another is chosen.
    Base,
    /// This version, until another is chosen.
    Version(u32),
}

/// The interference models of a head, and the data that it has learned from.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// The model that it was started with: `law`, `pretrained`, `table:FILE` or `model:DIR`.
    pub base: String,
    /// Versions whose error was smaller than that of the version before, the oldest first.
    pub versions: Vec<ModelRecord>,
    /// The version in use; none for the base.
    pub current: Option<u32>,
    /// Whether an admin pinned it.
    pub pinned: bool,
    /// Co-location sets whose jobs were measured together and alone.
    pub sets: u64,
    /// Members of those sets.
    pub rows: u64,
    /// Why the head uses the law instead, if the model failed.
    pub failure: Option<String>,
}

/// A version of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// From 1.
    pub version: u32,
    /// The kind of model.
    pub kind: String,
    /// The base at that time.
    pub base: String,
    /// When it was trained.
    pub trained_at: Time,
    /// Samples that it was trained on: members of sets.
    pub rows: u64,
    /// Later samples, not trained on, for validation.
    #[serde(rename = "judged_on")]
    pub validation_rows: u64,
    /// Mean absolute relative error of the slowdown on those.
    pub error: f64,
    /// The same error of the model that it replaced.
    pub error_before: f64,
}

impl fmt::Display for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelChoice::Auto => f.write_str("auto"),
            ModelChoice::Base => f.write_str("base"),
            ModelChoice::Version(version) => write!(f, "{version}"),
        }
    }
}

impl FromStr for ModelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<ModelChoice, String> {
        match text {
            "auto" => Ok(ModelChoice::Auto),
            "base" => Ok(ModelChoice::Base),
            number => number.parse().map(ModelChoice::Version).map_err(|_| {
                format!("'{number}' is not a version: give a version number, base for the source that the head was \
                     started with, or auto for the best version")
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_written_as_it_is_read() {
        for text in ["auto", "base", "3"] {
            assert_eq!(text.parse::<ModelChoice>().unwrap().to_string(), text);
        }
        let refusal = "best".parse::<ModelChoice>().unwrap_err();
        assert!(refusal.contains("'best'") && refusal.contains("auto"), "{refusal}");
    }
}

//! Models of interference: what the head goes by when it lets jobs share GPUs, and its earlier versions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Time;

/// Which model the head is to go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelChoice {
    /// The best that it learns: a new version takes the place of the present one when it errs less.
    Auto,
    /// What it was started with, until told otherwise.
    Base,
    /// This version, until told otherwise.
    Version(u32),
}

/// The models of a head, and what it has learned so far.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Models {
    /// What it was started with: `law`, `pretrained`, `table:FILE` or `model:FOLDER`.
    pub base: String,
    /// Versions that erred less than the one before them when they were trained, the oldest first.
    pub versions: Vec<ModelRecord>,
    /// The version that it goes by; the base, where there is none.
    pub current: Option<u32>,
    /// Whether it keeps to that one, by an admin's word.
    pub held: bool,
    /// Sets of jobs that were seen beside each other and alone.
    pub sets: u64,
    /// Members of those sets.
    pub rows: u64,
    /// Why it goes by the law instead, if the model has failed.
    pub trouble: Option<String>,
}

/// A version of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// From 1.
    pub version: u32,
    /// What kind of model it is.
    pub kind: String,
    /// What the head was started with then.
    pub base: String,
    /// When it was trained.
    pub trained_at: Time,
    /// Rows that it learned from: members of sets.
    pub rows: u64,
    /// Later rows that it never saw, and was judged on.
    pub judged_on: u64,
    /// Mean absolute error of the slowdown on those, as a part of it.
    pub error: f64,
    /// The same of the model that it took the place of.
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
                format!("'{number}' is no version: write the number of one, base for what the head was started with, \
                     or auto for the best")
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

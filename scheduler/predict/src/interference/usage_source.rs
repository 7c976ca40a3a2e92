//! Where a model's predictions of co-located memory and utilization come from, for people.

use serde::{Deserialize, Serialize};

/// How a model predicts what co-located jobs use.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSources {
    /// Of the memory.
    pub memory: UsageSource,
    /// Of the utilization.
    #[serde(rename = "utilisation")]
    pub utilization: UsageSource,
}

/// Where the predictions of one quantity come from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageSource {
    /// Models of this kind scale what each job uses alone.
    #[default]
    Scaled,
    /// The model would have learned the quantity, but no row of the training data has it: it scales what each
    /// job uses alone.
    NotMeasured,
    /// The model learned the quantity from the rows of the training data that have it.
    Learned,
}

impl UsageSources {
    /// Each quantity by name, with a sentence on its predictions.
    #[must_use]
    pub fn sentences(&self) -> [(&'static str, String); 2] {
        [("memory", self.memory), ("utilization", self.utilization)]
            .map(|(name, source)| (name, source.sentence(name)))
    }
}

impl UsageSource {
    fn sentence(self, name: &str) -> String {
        match self {
            UsageSource::Scaled => {
                format!(
                    "The {name} of co-located jobs is their {name} alone, scaled: this kind of model does not learn it."
                )
            }
            UsageSource::NotMeasured => {
                format!(
                    "The {name} of co-located jobs is their {name} alone, scaled: no row of the training data has it."
                )
            }
            UsageSource::Learned => {
                format!(
                    "The {name} of co-located jobs was learned from the rows of the training data that have it."
                )
            }
        }
    }
}

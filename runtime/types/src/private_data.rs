//! Whether users see the particulars of each other's jobs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The setting `private-data` of a head.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrivateData {
    /// Users see all of every job but its output.
    #[default]
    Off,
    /// Of the jobs of others, users see the id, the user, the state, the resources and the times.
    On,
}

impl FromStr for PrivateData {
    type Err = String;
    fn from_str(text: &str) -> Result<PrivateData, String> {
        match text {
            "off" => Ok(PrivateData::Off),
            "on" => Ok(PrivateData::On),
            other => Err(format!("'{other}' is neither on nor off")),
        }
    }
}

impl fmt::Display for PrivateData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PrivateData::Off => "off",
            PrivateData::On => "on",
        })
    }
}

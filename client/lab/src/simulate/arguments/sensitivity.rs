//! Arguments about how much cores and host memory speed jobs up.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args};

// How sensitive jobs are to cores and host memory.
#[derive(Debug, Args)]
pub(crate) struct SensitivityArguments {
    /// Give jobs ranges of cores and host memory; how fast they are with a share is in these tables: a CSV
    /// file (profile,cores,memory_gb,speed), or a directory with Synergy's files *_1.py of models. Each group
    /// of jobs draws a table from the seed; the cluster needs cores and memory, as in 8x8:V100@25g,24c500G
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) sensitivity: Option<PathBuf>,
    /// Profiles of --sensitivity that groups draw from [default: all]
    #[arg(long, value_name = "PROFILE,…", value_delimiter = ',', action = ArgAction::Append)]
    #[arg(requires = "sensitivity")]
    pub(crate) sensitivity_models: Vec<String>,
    /// What policies with tune=on know of the tables from the start: exact, noisy:SIGMA (with a log-normal
    /// error of each speed) or none [default: noisy:0.2]
    #[arg(long, value_name = "exact|noisy:SIGMA|none", requires = "sensitivity")]
    pub(crate) known_sensitivity: Option<SensitivityKnowledge>,
}

impl SensitivityArguments {
    /// What policies know of the tables.
    pub(crate) fn known(&self) -> SensitivityKnowledge {
        self.known_sensitivity.unwrap_or(SensitivityKnowledge::Noisy(0.2))
    }
}

/// What policies know of the tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SensitivityKnowledge {
    /// The tables.
    Exact,
    /// The tables, with an error of each speed.
    Noisy(f64),
    /// Nothing but what progress tells.
    None,
}

impl FromStr for SensitivityKnowledge {
    type Err = String;
    fn from_str(text: &str) -> Result<SensitivityKnowledge, String> {
        let sigma = |text: &str| text.parse().ok().filter(|sigma| (0.0..=5.0).contains(sigma));
        match text.split_once(':') {
            None if text == "exact" => Ok(SensitivityKnowledge::Exact),
            None if text == "none" => Ok(SensitivityKnowledge::None),
            Some(("noisy", given)) => sigma(given).map(SensitivityKnowledge::Noisy).ok_or_else(|| {
                format!("'{given}' is not a deviation from 0 to 5: write noisy:0.2 for errors of about 20%")
            }),
            Some(_) | None => {
                Err(format!("'{text}' is not what policies may know: write exact, noisy:0.2 or none"))
            }
        }
    }
}

impl fmt::Display for SensitivityKnowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SensitivityKnowledge::Exact => f.write_str("exact"),
            SensitivityKnowledge::Noisy(sigma) => write!(f, "noisy:{sigma}"),
            SensitivityKnowledge::None => f.write_str("none"),
        }
    }
}

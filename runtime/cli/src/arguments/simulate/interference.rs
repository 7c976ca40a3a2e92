//! How jobs on one GPU fare in a simulation: what is true, and what policies expect.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Truth {
    /// The law of slowdown.
    Law,
    /// A table of measurements.
    Table(PathBuf),
}

/// What policies expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predictor {
    /// What the law says of figures that were measured alone.
    Law,
    /// What is true.
    Truth,
}

const NO_MODELS: &str = "learned models cannot be used in simulations yet";

impl FromStr for Truth {
    type Err = String;
    fn from_str(text: &str) -> Result<Truth, String> {
        match text.split_once(':') {
            None if text == "law" => Ok(Truth::Law),
            Some(("table", file)) if !file.is_empty() => Ok(Truth::Table(file.into())),
            Some(("model", _)) => Err(format!("{NO_MODELS}: write law, or table:FILE for what was measured")),
            _ => Err(format!("'{text}' says nothing about jobs on one GPU: write law or table:FILE")),
        }
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Truth::Law => f.write_str("law"),
            Truth::Table(path) => write!(f, "table:{}", path.display()),
        }
    }
}

impl FromStr for Predictor {
    type Err = String;
    fn from_str(text: &str) -> Result<Predictor, String> {
        match text {
            "law" => Ok(Predictor::Law),
            "truth" => Ok(Predictor::Truth),
            _ if text.starts_with("model:") => Err(format!("{NO_MODELS}: write law or truth")),
            _ => Err(format!("'{text}' is no predictor: write law or truth")),
        }
    }
}

impl fmt::Display for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Predictor::Law => "law",
            Predictor::Truth => "truth",
        })
    }
}

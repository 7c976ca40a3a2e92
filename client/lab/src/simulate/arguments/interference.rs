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
    /// What a trained model says, from its folder.
    Model(PathBuf),
}

/// What policies expect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predictor {
    /// What the law says of figures that were measured alone.
    Law,
    /// What is true.
    Truth,
    /// What the model says that comes with the program.
    Pretrained,
    /// What a trained model says, from its folder.
    Model(PathBuf),
}

impl FromStr for Truth {
    type Err = String;
    fn from_str(text: &str) -> Result<Truth, String> {
        match text.split_once(':') {
            None if text == "law" => Ok(Truth::Law),
            Some(("table", file)) if !file.is_empty() => Ok(Truth::Table(file.into())),
            Some(("model", folder)) if !folder.is_empty() => Ok(Truth::Model(folder.into())),
            _ => Err(format!(
                "'{text}' says nothing about jobs on one GPU: write law, table:FILE or model:FOLDER"
            )),
        }
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Truth::Law => f.write_str("law"),
            Truth::Table(path) => write!(f, "table:{}", path.display()),
            Truth::Model(folder) => write!(f, "model:{}", folder.display()),
        }
    }
}

impl FromStr for Predictor {
    type Err = String;
    fn from_str(text: &str) -> Result<Predictor, String> {
        match text.split_once(':') {
            None if text == "law" => Ok(Predictor::Law),
            None if text == "truth" => Ok(Predictor::Truth),
            None if text == "pretrained" => Ok(Predictor::Pretrained),
            Some(("model", folder)) if !folder.is_empty() => Ok(Predictor::Model(folder.into())),
            _ => Err(format!("'{text}' is no predictor: write law, truth, pretrained or model:FOLDER")),
        }
    }
}

impl fmt::Display for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predictor::Law => f.write_str("law"),
            Predictor::Truth => f.write_str("truth"),
            Predictor::Pretrained => f.write_str("pretrained"),
            Predictor::Model(folder) => write!(f, "model:{}", folder.display()),
        }
    }
}

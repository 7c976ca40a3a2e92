//! Values of --interference and --predictor.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The source of the true slowdowns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Truth {
    /// The law of fair shares.
    Law,
    /// A table of measurements.
    Table(PathBuf),
    /// A trained model in a directory.
    Model(PathBuf),
}

/// The source of the slowdowns that policies predict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predictor {
    /// The law, applied to measurements of jobs running alone.
    Law,
    /// The law without any measurements: jobs count by what they request.
    None,
    /// The true slowdowns.
    Truth,
    /// The model that comes with the program.
    Pretrained,
    /// A trained model in a directory.
    Model(PathBuf),
}

impl FromStr for Truth {
    type Err = String;
    fn from_str(text: &str) -> Result<Truth, String> {
        match text.split_once(':') {
            None if text == "law" => Ok(Truth::Law),
            Some(("table", file)) if !file.is_empty() => Ok(Truth::Table(file.into())),
            Some(("model", folder)) if !folder.is_empty() => Ok(Truth::Model(folder.into())),
            _ => Err(format!("'{text}' is not a source of slowdowns: write law, table:FILE or model:DIR")),
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
            None if text == "none" => Ok(Predictor::None),
            None if text == "truth" => Ok(Predictor::Truth),
            None if text == "pretrained" => Ok(Predictor::Pretrained),
            Some(("model", folder)) if !folder.is_empty() => Ok(Predictor::Model(folder.into())),
            _ => Err(format!("'{text}' is not a predictor: write law, none, truth, pretrained or model:DIR")),
        }
    }
}

impl fmt::Display for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predictor::Law => f.write_str("law"),
            Predictor::None => f.write_str("none"),
            Predictor::Truth => f.write_str("truth"),
            Predictor::Pretrained => f.write_str("pretrained"),
            Predictor::Model(folder) => write!(f, "model:{}", folder.display()),
        }
    }
}

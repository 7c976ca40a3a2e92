//! The predictor of interference that a head starts with, as operators write it: `law`, `pretrained`,
//! `table:FILE` or `model:DIR`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where the predictor comes from that a head uses until it has trained a better model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterferenceSource {
    /// Max-min fair sharing of the device, which needs no measurements.
    Law,
    /// The model that is part of the program.
    Pretrained,
    /// A table of measurements that `cohabit profile` wrote.
    Table(PathBuf),
    /// A model in a directory that `cohabit predict train` wrote.
    Model(PathBuf),
}

/// A text that names no predictor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a source of slowdowns: write law, pretrained, table:FILE or model:DIR")]
pub struct UnknownInterferenceSource(String);

impl Default for InterferenceSource {
    /// The pretrained model, where the program was built with models.
    fn default() -> InterferenceSource {
        if cfg!(feature = "learned") { InterferenceSource::Pretrained } else { InterferenceSource::Law }
    }
}

impl InterferenceSource {
    /// Resolves a relative path against this directory.
    #[must_use]
    pub fn within(self, folder: &std::path::Path) -> InterferenceSource {
        match self {
            InterferenceSource::Law | InterferenceSource::Pretrained => self,
            InterferenceSource::Table(path) => InterferenceSource::Table(folder.join(path)),
            InterferenceSource::Model(path) => InterferenceSource::Model(folder.join(path)),
        }
    }
}

impl fmt::Display for InterferenceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InterferenceSource::Law => f.write_str("law"),
            InterferenceSource::Pretrained => f.write_str("pretrained"),
            InterferenceSource::Table(path) => write!(f, "table:{}", path.display()),
            InterferenceSource::Model(path) => write!(f, "model:{}", path.display()),
        }
    }
}

impl FromStr for InterferenceSource {
    type Err = UnknownInterferenceSource;

    fn from_str(text: &str) -> Result<InterferenceSource, UnknownInterferenceSource> {
        match text.split_once(':') {
            None if text == "law" => Ok(InterferenceSource::Law),
            None if text == "pretrained" => Ok(InterferenceSource::Pretrained),
            Some(("table", path)) if !path.is_empty() => Ok(InterferenceSource::Table(path.into())),
            Some(("model", path)) if !path.is_empty() => Ok(InterferenceSource::Model(path.into())),
            Some(_) | None => Err(UnknownInterferenceSource(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_written_as_it_is_read() {
        for text in ["law", "pretrained", "table:pairs.csv", "model:/srv/models/a:b"] {
            assert_eq!(text.parse::<InterferenceSource>().unwrap().to_string(), text);
        }
        for text in ["", "laws", "table:", "table", "model:", "file:pairs.csv"] {
            let refusal = text.parse::<InterferenceSource>().unwrap_err().to_string();
            assert!(refusal.contains("table:FILE"), "{refusal}");
        }
    }

    #[test]
    fn a_relative_path_is_resolved_against_the_directory() {
        let within = |text: &str| {
            text.parse::<InterferenceSource>().unwrap().within("/etc/cohabit".as_ref()).to_string()
        };
        assert_eq!(within("table:pairs.csv"), "table:/etc/cohabit/pairs.csv");
        assert_eq!(within("model:/srv/model"), "model:/srv/model");
        assert_eq!(within("law"), "law");
    }
}

//! What a head may start with: one word for each, as operators write it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What a head goes by before it has learned anything itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// The law of fair shares: needs no measurement.
    Law,
    /// The model that comes with the program.
    Pretrained,
    /// What was measured, by a table that `cohabit profile` wrote.
    Table(PathBuf),
    /// A model of one's own, in a folder that `cohabit predict train` wrote.
    Model(PathBuf),
}

/// A text that names nothing to start with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is nothing to go by: write law, pretrained, table:FILE or model:FOLDER")]
pub struct UnknownBasis(String);

impl Default for Basis {
    /// The model that comes with the program, where it was built with models.
    fn default() -> Basis {
        if cfg!(feature = "learned") { Basis::Pretrained } else { Basis::Law }
    }
}

impl Basis {
    /// The same with its file in this folder, unless that has a whole path.
    #[must_use]
    pub fn within(self, folder: &std::path::Path) -> Basis {
        match self {
            Basis::Law | Basis::Pretrained => self,
            Basis::Table(path) => Basis::Table(folder.join(path)),
            Basis::Model(path) => Basis::Model(folder.join(path)),
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::Law => f.write_str("law"),
            Basis::Pretrained => f.write_str("pretrained"),
            Basis::Table(path) => write!(f, "table:{}", path.display()),
            Basis::Model(path) => write!(f, "model:{}", path.display()),
        }
    }
}

impl FromStr for Basis {
    type Err = UnknownBasis;

    fn from_str(text: &str) -> Result<Basis, UnknownBasis> {
        match text.split_once(':') {
            None if text == "law" => Ok(Basis::Law),
            None if text == "pretrained" => Ok(Basis::Pretrained),
            Some(("table", path)) if !path.is_empty() => Ok(Basis::Table(path.into())),
            Some(("model", path)) if !path.is_empty() => Ok(Basis::Model(path.into())),
            Some(_) | None => Err(UnknownBasis(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basis_is_written_as_it_is_read() {
        for text in ["law", "pretrained", "table:pairs.csv", "model:/srv/models/a:b"] {
            assert_eq!(text.parse::<Basis>().unwrap().to_string(), text);
        }
        for text in ["", "laws", "table:", "table", "model:", "file:pairs.csv"] {
            let refusal = text.parse::<Basis>().unwrap_err().to_string();
            assert!(refusal.contains("table:FILE"), "{refusal}");
        }
    }

    #[test]
    fn a_file_is_looked_for_beside_what_names_it() {
        let within = |text: &str| text.parse::<Basis>().unwrap().within("/etc/cohabit".as_ref()).to_string();
        assert_eq!(within("table:pairs.csv"), "table:/etc/cohabit/pairs.csv");
        assert_eq!(within("model:/srv/model"), "model:/srv/model");
        assert_eq!(within("law"), "law");
    }
}

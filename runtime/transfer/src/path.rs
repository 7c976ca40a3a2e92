//! The place of an entry below what is transferred: names of which none leads elsewhere.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::DEEPEST;

/// The longest name that file systems take.
const LONGEST_NAME: usize = 255;

/// A path of plain names: neither absolute nor empty in between, without `.` and `..`. The empty one is
/// what was named by whoever asked. Bytes, because names need not be UTF-8.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Vec<serde_bytes::ByteBuf>", into = "Vec<serde_bytes::ByteBuf>")]
pub struct TransferPath(Vec<Vec<u8>>);

/// Why names are no such path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    /// A name that leads elsewhere, or that no file can have.
    #[error("no file can have the name '{0}'")]
    Name(String),
    /// Too many directories inside one another.
    #[error("more than {DEEPEST} directories lie inside one another")]
    TooDeep,
}

impl TransferPath {
    /// The path of this name below this one.
    ///
    /// # Errors
    /// When it is no plain name, or lies too deep.
    pub fn join(&self, name: &[u8]) -> Result<TransferPath, InvalidPath> {
        check(name)?;
        if self.0.len() >= DEEPEST {
            return Err(InvalidPath::TooDeep);
        }
        Ok(TransferPath(self.0.iter().cloned().chain([name.to_owned()]).collect()))
    }

    /// Its names, the outermost first.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &OsStr> {
        self.0.iter().map(|name| OsStr::from_bytes(name))
    }

    /// The directory that it is in, and its name there; none for what was named itself.
    #[must_use]
    pub fn split(&self) -> Option<(TransferPath, &OsStr)> {
        let (name, above) = self.0.split_last()?;
        Some((TransferPath(above.to_vec()), OsStr::from_bytes(name)))
    }
}

impl fmt::Display for TransferPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => f.write_str("."),
            false => self.names().collect::<PathBuf>().display().fmt(f),
        }
    }
}

impl TryFrom<Vec<serde_bytes::ByteBuf>> for TransferPath {
    type Error = InvalidPath;

    fn try_from(names: Vec<serde_bytes::ByteBuf>) -> Result<TransferPath, InvalidPath> {
        if names.len() > DEEPEST {
            return Err(InvalidPath::TooDeep);
        }
        names.iter().try_for_each(|name| check(name))?;
        Ok(TransferPath(names.into_iter().map(serde_bytes::ByteBuf::into_vec).collect()))
    }
}

impl From<TransferPath> for Vec<serde_bytes::ByteBuf> {
    fn from(path: TransferPath) -> Vec<serde_bytes::ByteBuf> {
        path.0.into_iter().map(serde_bytes::ByteBuf::from).collect()
    }
}

fn check(name: &[u8]) -> Result<(), InvalidPath> {
    let is_plain = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !matches!(name, b"." | b"..")
        && !name.iter().any(|byte| matches!(byte, b'/' | 0));
    match is_plain {
        true => Ok(()),
        false => Err(InvalidPath::Name(String::from_utf8_lossy(name).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_make_a_path() {
        let path = TransferPath::default().join(b"out").unwrap().join(b"model \xff.pt").unwrap();
        assert_eq!(path.names().len(), 2);
        assert_eq!(path.split().unwrap().0, TransferPath::default().join(b"out").unwrap());
        assert_eq!(
            (TransferPath::default().to_string(), TransferPath::default().split()),
            (".".into(), None)
        );
        let long = [b'x'; 256];
        for name in [&b""[..], b".", b"..", b"/", b"/etc", b"a/b", b"../x", b"a\0b", &long] {
            assert!(TransferPath::default().join(name).is_err(), "{name:?}");
            let read = TransferPath::try_from(vec![b"a".to_vec().into(), name.to_vec().into()]);
            assert!(read.is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_path_has_an_end() {
        let deepest = (0..DEEPEST).try_fold(TransferPath::default(), |path, _| path.join(b"d")).unwrap();
        assert_eq!(deepest.join(b"d"), Err(InvalidPath::TooDeep));
        let names = vec![serde_bytes::ByteBuf::from(b"d".to_vec()); DEEPEST + 1];
        assert_eq!(TransferPath::try_from(names), Err(InvalidPath::TooDeep));
    }
}

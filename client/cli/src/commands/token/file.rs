//! The file of a new token: readable by its owner alone from the start, and never in place of another.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use cohabit_console::{CommandError, CommandErrorKind};

/// An empty file for a token; removed again unless the token is written.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    file: File,
    is_written: bool,
}

impl TokenFile {
    /// Creates the file, before there is a token that could get lost.
    pub(super) fn create(path: &Path) -> Result<TokenFile, CommandError> {
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = created.map_err(|error| {
            if error.kind() != io::ErrorKind::AlreadyExists {
                return failed("create", path, &error);
            }
            CommandError::invalid(format!(
                "--out {}: the file exists already: give another name, or remove it first",
                path.display()
            ))
        })?;
        Ok(TokenFile { path: path.to_owned(), file, is_written: false })
    }

    /// Writes the token.
    pub(super) fn write(mut self, token: &str) -> Result<(), CommandError> {
        let written =
            self.file.write_all(format!("{token}\n").as_bytes()).and_then(|()| self.file.sync_all());
        written.map_err(|error| failed("write", &self.path, &error))?;
        self.is_written = true;
        Ok(())
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        if !self.is_written {
            // An empty file does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(
        CommandErrorKind::InputOutput,
        format!("--out {}: cannot {action} the file: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_owner_reads_the_file_of_a_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.token");
        TokenFile::create(&path).unwrap().write("secret").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "secret\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn a_file_that_exists_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.token");
        fs::write(&path, "mine").unwrap();
        let refusal = TokenFile::create(&path).unwrap_err();
        assert!(refusal.message.ends_with("the file exists already: give another name, or remove it first"));
        let dangling = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &dangling).unwrap();
        assert!(TokenFile::create(&dangling).unwrap_err().message.contains("exists already"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        let missing = TokenFile::create(&folder.path().join("no/ada.token")).unwrap_err();
        assert_eq!(missing.kind, CommandErrorKind::InputOutput);
    }

    #[test]
    fn no_empty_file_stays_where_no_token_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ada.token");
        drop(TokenFile::create(&path).unwrap());
        assert!(!path.exists());
    }
}

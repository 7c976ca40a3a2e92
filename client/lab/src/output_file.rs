//! Files that a command writes besides its output: checked before the work, and replaced as a whole.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cohabit_console::{CommandError, CommandErrorKind};
use tempfile::{Builder, NamedTempFile};

/// Permissions of a new file, of which the umask takes its part.
const MODE: u32 = 0o666;

/// A file to write when the work is done.
#[derive(Debug)]
pub struct OutputFile {
    flag: &'static str,
    given: PathBuf,
    target: Target,
}

/// What the path leads to.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, or none yet: a complete file takes its place.
    Replaced(PathBuf),
    /// A pipe or a device, which must stay what it is.
    Stream(PathBuf),
}

impl OutputFile {
    /// The file that a flag names, if it can be written now.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn prepare(flag: &'static str, path: &Path) -> Result<OutputFile, CommandError> {
        let failed = |error: &io::Error| unwritable(flag, path, error);
        let target = Target::of(path).map_err(|error| failed(&error))?;
        let file = OutputFile { flag, given: path.to_owned(), target };
        match &file.target {
            Target::Replaced(target) => drop(unfinished(target).map_err(|error| failed(&error))?),
            Target::Stream(_) => {}
        }
        Ok(file)
    }

    /// The file of a flag that may be missing.
    ///
    /// # Errors
    /// As [`OutputFile::prepare`].
    pub fn prepare_if_any(
        flag: &'static str,
        path: Option<&PathBuf>,
    ) -> Result<Option<OutputFile>, CommandError> {
        path.map(|path| OutputFile::prepare(flag, path)).transpose()
    }

    /// Refuses two flags that name one file: the later would replace what the earlier wrote.
    #[cfg(feature = "simulate")]
    pub(crate) fn check_distinct(files: &[&OutputFile]) -> Result<(), CommandError> {
        for (place, one) in files.iter().enumerate() {
            let same = |other: &&&OutputFile| {
                matches!(one.target, Target::Replaced(_)) && other.target == one.target
            };
            if let Some(other) = files[place + 1..].iter().find(same) {
                let (flags, path) = (format!("{} and {}", one.flag, other.flag), one.given.display());
                return Err(CommandError::invalid(format!(
                    "{flags} name the same file {path}: give each a file of its own"
                )));
            }
        }
        Ok(())
    }

    /// Writes what `fill` writes. Where a file is replaced, nobody sees it before it is complete.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CommandError> {
        let written = match &self.target {
            Target::Stream(path) => OpenOptions::new().write(true).open(path).and_then(|it| filled(it, fill)),
            Target::Replaced(path) => replace(path, fill),
        };
        written.map_err(|error| unwritable(self.flag, &self.given, &error))
    }
}

/// Checks that a directory that a flag names can be made or written to, before the work.
///
/// # Errors
/// If it cannot.
#[cfg(feature = "predict")]
pub(crate) fn check_directory(flag: &str, path: &Path) -> Result<(), CommandError> {
    let existing = path.ancestors().find(|folder| folder.as_os_str().is_empty() || folder.exists());
    let existing = existing.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let checked = match existing.is_dir() {
        true => tempfile::tempfile_in(existing).map(drop),
        false => Err(io::ErrorKind::NotADirectory.into()),
    };
    checked.map_err(|error| unwritable(flag, path, &error))
}

impl Target {
    fn of(path: &Path) -> io::Result<Target> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // A link stays one, and the file behind it is replaced.
            Ok(found) if found.is_file() => Ok(Target::Replaced(fs::canonicalize(path)?)),
            Ok(_) => Ok(Target::Stream(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.file_name().is_some() => {
                let folder = fs::canonicalize(folder_of(path))?;
                Ok(Target::Replaced(folder.join(path.file_name().unwrap_or_default())))
            }
            Err(error) => Err(error),
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file without content beside the final one.
fn unfinished(target: &Path) -> io::Result<NamedTempFile> {
    Builder::new().permissions(Permissions::from_mode(MODE)).tempfile_in(folder_of(target))
}

fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let unfinished = unfinished(path)?;
    filled(unfinished.as_file(), fill)?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(path).map(drop).map_err(|error| error.error)
}

fn filled<W: Write>(file: W, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::new(file);
    fill(&mut buffered)?;
    buffered.flush()
}

fn unwritable(flag: &str, path: &Path, error: &io::Error) -> CommandError {
    let message = format!("cannot write {flag} {}: {error}", path.display());
    CommandError::new(CommandErrorKind::InputOutput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(path: &Path) -> Result<OutputFile, CommandError> {
        OutputFile::prepare("--report", path)
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "before").unwrap();
        let file = prepare(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before", "a check changes nothing");
        let failed = file.write(|to| {
            to.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(failed.unwrap_err().message.starts_with("cannot write --report "));
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        file.write(|to| to.write_all(b"after")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing stays behind");
    }

    #[test]
    fn links_and_streams_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        prepare(&link).unwrap().write(|to| to.write_all(b"text")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "text");
        let device = Path::new("/dev/null");
        prepare(device).unwrap().write(|to| to.write_all(b"text")).unwrap();
        assert!(!fs::metadata(device).unwrap().is_file());
    }

    #[test]
    fn what_cannot_be_written_is_found_before() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for (path, words) in [
            (folder.path().to_owned(), "directory"),
            (folder.path().join("none/report.html"), "No such file"),
            (folder.path().join("file/report.html"), "Not a directory"),
        ] {
            let refusal = prepare(&path).unwrap_err();
            assert!(refusal.message.contains(words), "{refusal}");
            assert_eq!(refusal.kind, CommandErrorKind::InputOutput);
        }
    }

    #[test]
    #[cfg(feature = "predict")]
    fn a_directory_is_checked_by_the_nearest_that_exists() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(check_directory("--out", &folder.path().join("a/b")).is_ok());
        assert!(check_directory("--out", Path::new("here")).is_ok());
        let refusal = check_directory("--out", &folder.path().join("file/b")).unwrap_err();
        assert!(refusal.message.starts_with("cannot write --out "), "{refusal}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a check makes nothing");
    }

    #[test]
    #[cfg(feature = "simulate")]
    fn two_flags_do_not_name_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let of = |flag, name: &str| OutputFile::prepare(flag, &folder.path().join(name)).unwrap();
        let (one, same, other) = (of("--a", "x"), of("--b", "./x"), of("--c", "y"));
        assert!(OutputFile::check_distinct(&[&one, &other]).is_ok());
        let refusal = OutputFile::check_distinct(&[&other, &one, &same]).unwrap_err();
        assert!(refusal.message.starts_with("--a and --b name the same file"), "{refusal}");
    }
}

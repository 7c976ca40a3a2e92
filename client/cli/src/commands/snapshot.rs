//! `--snapshot`: scans the code that a job is to run in, as the flag or the setting says.

use std::io::{self, IsTerminal};
use std::path::{Component, Path, PathBuf};

use cohabit_client::types::counted;
use cohabit_client::{CodeError, CodeFolder, Error, FileContent, FileSelection, Manifest};
use cohabit_console::{CommandError, CommandErrorKind, output};

use crate::arguments::{ConnectionArguments, SnapshotArgument};
use crate::config::SettingKey;
use crate::endpoint::read_settings;

/// The code of a job with this working directory; none if it is to run in that directory itself.
pub(super) async fn scan_code(
    connection: &ConnectionArguments,
    flag: Option<SnapshotArgument>,
    workdir: &str,
) -> Result<Option<CodeFolder>, CommandError> {
    if let Some(choice) = flag {
        let Some(selection) = selection(choice) else { return Ok(None) };
        return match CodeFolder::scan(workdir, selection).await {
            Err(Error::Code(error @ CodeError::NotUnderGit(_))) => {
                ask_for_all(workdir, error).await.map(Some)
            }
            scanned => Ok(Some(scanned?)),
        };
    }
    let settings = read_settings(connection)?;
    let Some(setting) = settings.find(SettingKey::Snapshot) else { return Ok(None) };
    let Some(selection) = selection(setting.check(SnapshotArgument::parse)?) else { return Ok(None) };
    match CodeFolder::scan(workdir, selection).await {
        Err(Error::Code(CodeError::NotUnderGit(folder))) => {
            output::print_message(&format!(
                "note: the job runs without a snapshot ({}), because '{}' is not under git",
                setting.place(),
                folder.display()
            ));
            Ok(None)
        }
        scanned => Ok(Some(scanned?)),
    }
}

const fn selection(choice: SnapshotArgument) -> Option<FileSelection> {
    match choice {
        SnapshotArgument::Git => Some(FileSelection::Git),
        SnapshotArgument::All => Some(FileSelection::All),
        SnapshotArgument::No => None,
    }
}

/// Asks on a terminal whether to take all files of a directory that is not under git; else this error stands.
async fn ask_for_all(workdir: &str, error: CodeError) -> Result<CodeFolder, CommandError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Error::Code(error).into());
    }
    let code = CodeFolder::scan(workdir, FileSelection::All).await?;
    output::print_message(&question(workdir, code.manifest()));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    if read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(code);
    }
    Err(CommandError::new(CommandErrorKind::Interrupted, "not confirmed: nothing was submitted"))
}

fn question(workdir: &str, manifest: &Manifest) -> String {
    let files = counted(manifest.files().len(), "file", "files");
    format!("'{workdir}' is not under git. Take all its {files} ({})? [y/N]", manifest.bytes())
}

/// Refuses a program, given by a path from the working directory, that the snapshot lacks.
pub(super) fn check_program(code: &CodeFolder, program: &str) -> Result<(), CommandError> {
    if program.starts_with('/') || !program.contains('/') {
        return Ok(());
    }
    let full = without_dots(&Path::new(code.workdir()).join(program));
    let why = match (full.strip_prefix(code.root()), code.manifest().selection()) {
        (Ok(path), _) if contains(code.manifest(), path) => return Ok(()),
        (Ok(_), FileSelection::Git) => "git or .cohabitignore ignores it",
        (Ok(_), FileSelection::All) => ".cohabitignore names it",
        (Err(_), _) => "it lies outside of the folder",
    };
    // A program that does not exist here either fails as it would without a snapshot.
    if !full.exists() {
        return Ok(());
    }
    Err(CommandError::invalid(format!(
        "'{program}' is not part of the snapshot ({why}): give its absolute path {}",
        full.display()
    )))
}

/// Whether this path leads to a file of a snapshot, or through a link of it.
fn contains(manifest: &Manifest, path: &Path) -> bool {
    path.ancestors().filter_map(Path::to_str).any(|above| match manifest.file(above) {
        Some(FileContent::Link(_)) => true,
        Some(FileContent::Stored { .. }) => Path::new(above) == path,
        None => false,
    })
}

/// The path without `.` and `..`.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;
    use crate::process::block_on;

    /// A directory with a program, one that `.cohabitignore` names, and one behind a link.
    fn folder() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".venv/bin")).unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        for file in ["run.sh", ".venv/bin/python", "src/train.py"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        fs::write(folder.path().join(".cohabitignore"), ".venv\n").unwrap();
        symlink(".venv", folder.path().join("env")).unwrap();
        folder
    }

    fn scan(folder: &Path, choice: SnapshotArgument) -> Result<Option<CodeFolder>, CommandError> {
        let workdir = folder.to_str().unwrap();
        block_on(scan_code(&ConnectionArguments::default(), Some(choice), workdir))
    }

    #[test]
    fn a_program_that_the_snapshot_lacks_is_refused_with_its_absolute_path() {
        let folder = folder();
        let code = scan(folder.path(), SnapshotArgument::All).unwrap().unwrap();
        for taken in ["python", "/bin/sh", "./run.sh", "src/../run.sh", "env/bin/python", "./missing.sh"] {
            assert_eq!(check_program(&code, taken), Ok(()), "{taken}");
        }
        let refused = check_program(&code, ".venv/bin/python").unwrap_err().message;
        let path = folder.path().join(".venv/bin/python");
        let advice = format!(
            "(.cohabitignore names it): give its absolute path {}",
            path.canonicalize().unwrap().display()
        );
        assert!(refused.contains(&advice), "{refused}");
        let outside = check_program(&code, "../../bin/sh").map_err(|error| error.message);
        assert!(outside.is_ok() || outside.unwrap_err().contains("lies outside"));
    }

    #[test]
    fn without_a_terminal_a_directory_that_is_not_under_git_is_an_error_with_a_remedy() {
        let folder = folder();
        let failure = scan(folder.path(), SnapshotArgument::Git).unwrap_err();
        assert_eq!(failure.kind, CommandErrorKind::Usage);
        assert!(failure.message.contains("is not under git") && failure.message.contains("--snapshot=all"));
        assert!(scan(folder.path(), SnapshotArgument::No).unwrap().is_none());
        let code = scan(folder.path(), SnapshotArgument::All).unwrap().unwrap();
        let asked = question("/home/ada", code.manifest());
        assert_eq!(asked, "'/home/ada' is not under git. Take all its 4 files (6 B)? [y/N]");
    }
}

//! `code --extract`: writes the code of a job into a directory.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

use cohabit_client::FileContent;
use cohabit_console::{CommandError, CommandErrorKind, output, with_schema};

use super::stored_code::StoredCode;
use crate::arguments::OutputFormat;
use crate::render::code_documents::ExtractedCodeDocument;

/// Writes all files into a directory that is new or empty, and prints its path.
pub(super) async fn extract(
    code: &StoredCode,
    folder: &Path,
    format: OutputFormat,
) -> Result<(), CommandError> {
    prepare(folder)?;
    for file in code.manifest.files() {
        let content = code.read(&file.content).await?;
        // No path of a manifest climbs, and none leads through a link of it.
        let path = folder.join(&file.path);
        write(&path, &file.content, &content).map_err(|error| failed("write", &path, &error))?;
    }
    let extracted = folder.display().to_string();
    match format {
        OutputFormat::Json => {
            let (id, snapshot) = (code.job, code.snapshot.manifest);
            output::print_document(&with_schema(ExtractedCodeDocument { id, snapshot, extracted }))
        }
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet => output::print_text(&extracted),
    }
}

/// Makes the directory, unless it exists and is empty.
fn prepare(folder: &Path) -> Result<(), CommandError> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => return created.map_err(|error| failed("create", folder, &error)),
    }
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CommandError::invalid(format!(
            "--extract {}: the directory is not empty: give one that is, or that does not exist",
            folder.display()
        ))),
        Err(error) => Err(failed("read", folder, &error)),
    }
}

fn write(path: &Path, file: &FileContent, content: &[u8]) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::create_dir_all(above)?;
    }
    match file {
        FileContent::Link(target) => symlink(target, path),
        FileContent::Stored { is_executable, .. } => {
            let mode = if *is_executable { 0o777 } else { 0o666 };
            OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(content)
        }
    }
}

fn failed(action: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(
        CommandErrorKind::InputOutput,
        format!("--extract: cannot {action} '{}': {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use cohabit_client::types::ContentHash;

    use super::*;

    fn stored(is_executable: bool) -> FileContent {
        FileContent::Stored { hash: ContentHash([0; 32]), size: 4, is_executable }
    }

    #[test]
    fn files_keep_their_modes_and_links_their_targets() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        write(&path("bin/run.sh"), &stored(true), b"echo").unwrap();
        write(&path("bin/notes"), &stored(false), b"text").unwrap();
        write(&path("data"), &FileContent::Link("/srv/data".into()), b"/srv/data").unwrap();
        let mode = |name: &str| path(name).metadata().unwrap().permissions().mode() & 0o100;
        assert_eq!((mode("bin/run.sh"), mode("bin/notes")), (0o100, 0));
        assert_eq!(fs::read(path("bin/run.sh")).unwrap(), b"echo");
        assert_eq!(fs::read_link(path("data")).unwrap(), Path::new("/srv/data"));
        assert!(write(&path("data"), &stored(false), b"text").is_err(), "nothing is replaced or followed");
    }

    #[test]
    fn only_a_new_or_empty_directory_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        prepare(&new).unwrap();
        prepare(&new).unwrap();
        fs::write(new.join("file"), "").unwrap();
        let refused = prepare(&new).unwrap_err();
        assert!(refused.message.contains("the directory is not empty"), "{refused}");
        let nowhere = prepare(&folder.path().join("no/where")).unwrap_err();
        assert_eq!(nowhere.kind, CommandErrorKind::InputOutput);
    }
}

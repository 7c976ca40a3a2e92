//! Compares the code of a job with the files of a directory, and prints what differs.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;

use cohabit_client::types::LogStream;
use cohabit_client::{CodeError, CodeFolder, Error, FileContent, FileSelection};
use cohabit_console::{Colour, CommandError, CommandErrorKind, Screen, output, printable_line, with_schema};

use super::stored_code::StoredCode;
use crate::arguments::{CodeArguments, OutputFormat};
use crate::code_changes::{self, ChangeKind, FileChange};
use crate::render::code_diff::{ChangedContent, DiffStyle, file_diff};
use crate::render::code_documents::{CodeComparisonDocument, FileChangeDocument};
use crate::render::code_stat::stat_table;

/// Compares, and prints in the form that the flags name.
pub(super) async fn compare(code: &StoredCode, arguments: &CodeArguments) -> Result<(), CommandError> {
    let today = scan(code, arguments.against.as_deref()).await?;
    let changes = code_changes::compare(&code.manifest, today.manifest());
    match arguments.display.output {
        OutputFormat::Json => return print_document(code, &today, &changes),
        OutputFormat::Quiet => {
            let mut paths = changes.iter().map(|change| printable_line(&change.path));
            return paths.try_for_each(|path| output::print_text(&path));
        }
        OutputFormat::Table | OutputFormat::Wide => {}
    }
    if changes.is_empty() {
        let (folder, job) = (today.root().display(), code.job);
        output::print_message(&format!("no differences: {folder} is as it was when job {job} was submitted"));
        return Ok(());
    }
    if arguments.stat {
        return print_counts(code, &today, changes).await;
    }
    let style = style();
    for change in changes.into_iter().flat_map(FileChange::into_parts) {
        let content = content(code, &today, &change).await?;
        print_diff(&file_diff(&change, &content, style), style)?;
    }
    Ok(())
}

/// The files to compare with, chosen as those of the snapshot were.
async fn scan(code: &StoredCode, against: Option<&Path>) -> Result<CodeFolder, CommandError> {
    let folder = against.unwrap_or(Path::new(&code.snapshot.folder));
    match CodeFolder::scan_below(folder, code.manifest.selection()).await {
        Err(Error::Code(CodeError::NotUnderGit(_))) => {
            let shown = folder.display();
            output::print_message(&format!("note: '{shown}' is not under git: all its files are compared"));
            Ok(CodeFolder::scan_below(folder, FileSelection::All).await?)
        }
        Err(Error::Code(CodeError::Folder { source, .. })) if against.is_none() => {
            Err(CommandError::new(CommandErrorKind::NotFound, missing_folder(folder, &source)))
        }
        scanned => Ok(scanned?),
    }
}

fn missing_folder(folder: &Path, error: &io::Error) -> String {
    format!(
        "cannot read '{}', of which the snapshot was taken, on this machine ({error}): name another directory \
         with --against DIR, or write the snapshot to one with --extract DIR",
        folder.display()
    )
}

/// Both sides of a file; read only if they differ.
async fn content(
    code: &StoredCode,
    today: &CodeFolder,
    change: &FileChange,
) -> Result<ChangedContent, CommandError> {
    let mut content = ChangedContent::default();
    if change.kind() == ChangeKind::Mode {
        return Ok(content);
    }
    if let Some(before) = &change.before {
        content.before = code.read(before).await?;
    }
    content.after = match &change.after {
        None => Vec::new(),
        Some(FileContent::Link(target)) => target.clone().into_bytes(),
        Some(FileContent::Stored { .. }) => read_file(&today.root().join(&change.path))?,
    };
    Ok(content)
}

fn read_file(path: &Path) -> Result<Vec<u8>, CommandError> {
    fs::read(path).map_err(|error| {
        let message = format!("cannot read '{}': {error}", path.display());
        CommandError::new(CommandErrorKind::InputOutput, message)
    })
}

async fn print_counts(
    code: &StoredCode,
    today: &CodeFolder,
    changes: Vec<FileChange>,
) -> Result<(), CommandError> {
    let mut files = Vec::with_capacity(changes.len());
    for change in changes {
        let counts = content(code, today, &change).await?.line_counts();
        files.push((change.path, counts));
    }
    output::print_text(&stat_table(&files, Screen::of_stdout()))
}

fn print_document(code: &StoredCode, today: &CodeFolder, changes: &[FileChange]) -> Result<(), CommandError> {
    output::print_document(&with_schema(CodeComparisonDocument {
        id: code.job,
        snapshot: code.snapshot.manifest,
        folder: code.snapshot.folder.clone(),
        against: today.root().display().to_string(),
        files: changes.iter().map(FileChangeDocument::from).collect(),
    }))
}

/// A patch, unless people look at it.
fn style() -> DiffStyle {
    let colour = Screen::of_stdout().colour;
    match colour == Colour::None && !io::stdout().is_terminal() {
        true => DiffStyle::Patch,
        false => DiffStyle::Screen(colour),
    }
}

fn print_diff(text: &str, style: DiffStyle) -> Result<(), CommandError> {
    match style {
        DiffStyle::Patch => output::print_bytes(LogStream::Stdout, text.as_bytes()),
        DiffStyle::Screen(_) => output::print_text(text),
    }
}

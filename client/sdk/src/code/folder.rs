//! A folder whose files have been listed and hashed.

use std::fs;
use std::path::{Component, Path, PathBuf};

use cohabit_store::{FileContent, FileSelection, Manifest, ManifestFile, hash_of_file};
use cohabit_types::CodeSnapshot;

use super::error::CodeError;
use super::found_file::{FileKind, FoundFile};
use super::ignore_rules::IgnoreRules;
use super::{found_file, git, limits, walk};
use crate::Error;
use crate::connect::on_blocking_thread;

/// The files of a folder as they were when it was scanned.
#[derive(Debug, Clone)]
pub struct CodeFolder {
    root: String,
    workdir: String,
    manifest: Manifest,
    source: CodeSource,
}

/// Where the files of a snapshot are read.
#[derive(Debug, Clone)]
enum CodeSource {
    /// At their paths below the folder.
    Folder,
    /// Here: the one file is a program, which may have another path by now, or none.
    Program(PathBuf),
}

impl CodeFolder {
    /// Scans the folder of a job with this working directory.
    ///
    /// With [`FileSelection::Git`] it is the work tree that contains the working directory, with the files
    /// that git tracks or does not ignore. With [`FileSelection::All`] it is the working directory itself,
    /// with everything but `.git`, sockets, pipes and devices. A file `.cohabitignore` in the folder, in the
    /// syntax of `.gitignore`, names what is left out. Symbolic links are kept, not followed.
    ///
    /// # Errors
    /// [`Error::Code`] says what is wrong with the folder; [`CodeError::NotUnderGit`] may call for the other
    /// selection.
    pub async fn scan(workdir: impl Into<PathBuf>, selection: FileSelection) -> Result<CodeFolder, Error> {
        let workdir = workdir.into();
        on_blocking_thread(move || {
            let (root, workdir) = locate(&workdir, selection)?;
            Ok(scan_root(root, workdir, selection)?)
        })
        .await
    }

    /// Scans this folder and what lies below it, also where it is only a part of a work tree.
    ///
    /// # Errors
    /// Those of [`CodeFolder::scan`].
    pub async fn scan_below(
        folder: impl Into<PathBuf>,
        selection: FileSelection,
    ) -> Result<CodeFolder, Error> {
        let folder = folder.into();
        on_blocking_thread(move || {
            let folder = plain_path(&folder)?;
            Ok(scan_root(folder.clone(), folder, selection)?)
        })
        .await
    }

    /// A program as a snapshot of one file, which may be executed. `program` is where it is read, as
    /// `/proc/self/exe`, which is there also when the file was replaced meanwhile; it follows symbolic links.
    /// The snapshot names it `name`.
    ///
    /// # Errors
    /// [`Error::Code`] if it cannot be read or is too large.
    pub async fn of_program(
        program: impl Into<PathBuf>,
        name: impl Into<String>,
    ) -> Result<CodeFolder, Error> {
        let (program, name) = (program.into(), name.into());
        on_blocking_thread(move || Ok(read_program(program, name)?)).await
    }

    /// The same folder as it is now.
    pub(super) async fn scan_again(&self) -> Result<CodeFolder, Error> {
        let (root, workdir) = (self.root.clone().into(), self.workdir.clone().into());
        let selection = self.manifest.selection();
        match &self.source {
            CodeSource::Folder => on_blocking_thread(move || Ok(scan_root(root, workdir, selection)?)).await,
            CodeSource::Program(program) => {
                let name = self.manifest.files().first().map(|file| file.path.clone());
                CodeFolder::of_program(program, name.unwrap_or_default()).await
            }
        }
    }

    /// Where this file of the manifest is read.
    pub(super) fn source_of(&self, path: &str) -> PathBuf {
        match &self.source {
            CodeSource::Folder => self.root().join(path),
            CodeSource::Program(program) => program.clone(),
        }
    }

    /// Absolute path of the folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        Path::new(&self.root)
    }

    /// Absolute path of the working directory, in the folder. Symbolic links on the way to it are resolved
    /// where it would not lie in the folder otherwise.
    #[must_use]
    pub fn workdir(&self) -> &str {
        &self.workdir
    }

    /// Its files.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What a job says of it. The head takes the job once the files are uploaded.
    #[must_use]
    pub fn snapshot(&self) -> CodeSnapshot {
        CodeSnapshot {
            manifest: self.manifest.encode().0,
            folder: self.root.clone(),
            files: self.manifest.files().len() as u64,
            bytes: self.manifest.bytes(),
        }
    }
}

fn scan_root(root: PathBuf, workdir: PathBuf, selection: FileSelection) -> Result<CodeFolder, CodeError> {
    let rules = IgnoreRules::of(&root)?;
    let listed = match selection {
        FileSelection::Git => git::list(&root, &rules)?,
        FileSelection::All => walk::list(&root, &rules)?,
    };
    let found = found_file::inspect(&root, &listed)?;
    limits::check(&root, &found)?;
    let mut files = Vec::with_capacity(found.len());
    for file in found {
        files.extend(file.read(&root)?);
    }
    let manifest = Manifest::new(selection, files)?;
    Ok(CodeFolder { root: utf8(root)?, workdir: utf8(workdir)?, manifest, source: CodeSource::Folder })
}

fn read_program(program: PathBuf, name: String) -> Result<CodeFolder, CodeError> {
    let unreadable = |source| CodeError::Unreadable { file: program.clone(), source };
    // The target of a link in /proc is its path when it was opened, whatever is there now.
    let place = fs::read_link(&program).unwrap_or_else(|_| program.clone());
    let place = std::path::absolute(place).map_err(unreadable)?;
    let root: PathBuf = place.parent().unwrap_or(Path::new("/")).components().collect();
    let mut file = fs::File::open(&program).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    let found = FoundFile { path: name.clone(), kind: FileKind::Regular { size, is_executable: true } };
    limits::check(&root, &[found])?;
    let (hash, size) = hash_of_file(&mut file).map_err(unreadable)?;
    let content = FileContent::Stored { hash, size, is_executable: true };
    let manifest = Manifest::new(FileSelection::All, vec![ManifestFile { path: name, content }])?;
    let root = utf8(root)?;
    Ok(CodeFolder { workdir: root.clone(), root, manifest, source: CodeSource::Program(program) })
}

/// The folder to scan for this working directory, and the directory as an absolute path in it.
fn locate(workdir: &Path, selection: FileSelection) -> Result<(PathBuf, PathBuf), CodeError> {
    let workdir = plain_path(workdir)?;
    match selection {
        FileSelection::All => Ok((workdir.clone(), workdir)),
        FileSelection::Git => {
            let below = git::path_in_work_tree(&workdir)?;
            if let Some(root) = without_end(&workdir, &below) {
                return Ok((root, workdir));
            }
            // A link inside the work tree leads there.
            let real = canonical(&workdir)?;
            let root = without_end(&real, &below).ok_or(CodeError::NotUnderGit(workdir))?;
            Ok((root, real))
        }
    }
}

/// The directory as an absolute path without `..`.
fn plain_path(directory: &Path) -> Result<PathBuf, CodeError> {
    let unreadable = |source| CodeError::Folder { folder: directory.to_owned(), source };
    let absolute: PathBuf = std::path::absolute(directory).map_err(unreadable)?.components().collect();
    // Also shows that it is a directory.
    fs::read_dir(&absolute).map_err(unreadable)?;
    match absolute.components().any(|part| part == Component::ParentDir) {
        true => canonical(&absolute),
        false => Ok(absolute),
    }
}

fn canonical(directory: &Path) -> Result<PathBuf, CodeError> {
    fs::canonicalize(directory).map_err(|source| CodeError::Folder { folder: directory.to_owned(), source })
}

/// The path without these last parts of it.
fn without_end(path: &Path, end: &Path) -> Option<PathBuf> {
    path.ends_with(end).then(|| path.ancestors().nth(end.components().count()).map(Path::to_owned))?
}

fn utf8(path: PathBuf) -> Result<String, CodeError> {
    path.into_os_string().into_string().map_err(|path| CodeError::NotUtf8 { what: "path", file: path.into() })
}

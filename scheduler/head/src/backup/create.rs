//! Makes a backup: copies, digests, and one file that appears when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cohabit_types::Bytes;
use nix::unistd::geteuid;
use tar::{Builder, EntryType, Header};

use super::contents::{JOURNAL, list};
use super::error::BackupError;
use super::hashing_reader::HashingReader;
use super::journal_copy::copy_journal;
use super::manifest::{BackupManifest, FORMAT, MANIFEST, ManifestEntry};
use super::workspace::private_folder;
use crate::HeadError;
use crate::clock::wall_clock;
use crate::state_dir::StateDir;

/// A file that changes while it is copied is copied again.
const ATTEMPTS: usize = 5;

/// What to do where the file of the backup exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    /// Refuse.
    Keep,
    /// Replace it, once the new backup is complete.
    Replace,
}

/// A backup that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupSummary {
    /// The file, as an absolute path.
    pub file: PathBuf,
    /// Its size.
    pub bytes: Bytes,
    /// How many files of the state directory are in it.
    pub files: u64,
    /// The id of the cluster.
    pub cluster: String,
    /// How many jobs, and members of arrays, the head had in memory.
    pub jobs: u64,
    /// The highest number of a job.
    pub last_job: u64,
}

/// Writes a backup of this state directory to a file. Its head may run. Blocks.
///
/// # Errors
/// Why there is no backup; a file of an earlier one is left as it is.
pub fn back_up(state: &Path, file: &Path, existing: ExistingFile) -> Result<BackupSummary, BackupError> {
    check_owner(state)?;
    if !StateDir::journal_in(state).is_file() {
        return Err(HeadError::NoJournal(state.to_owned()).into());
    }
    let (folder, file) = check_file(state, file, existing)?;
    let workspace = private_folder(&folder, ".cohabit-backup-")?;
    let (journal, draft) = (workspace.path().join(JOURNAL), workspace.path().join("backup"));
    let copied = copy_journal(state, &journal)?;
    let mut manifest = BackupManifest {
        format: FORMAT,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        cluster: copied.cluster,
        created_at: jiff::Timestamp::from_microsecond(wall_clock().as_micros().cast_signed())
            .map_or_else(|_| String::new(), |time| time.to_string()),
        journal_format: copied.format,
        last_job: copied.last_job,
        jobs: copied.jobs,
        files: Vec::new(),
    };
    let written = write_unchanging(state, &journal, &draft, &mut manifest)?;
    written.sync_all().map_err(BackupError::io(&draft))?;
    let bytes = written.metadata().map_err(BackupError::io(&draft))?.len();
    if existing == ExistingFile::Keep && file.exists() {
        return Err(BackupError::Exists(file));
    }
    fs::rename(&draft, &file).map_err(BackupError::io(&file))?;
    File::open(&folder).and_then(|folder| folder.sync_all()).map_err(BackupError::io(&folder))?;
    let BackupManifest { cluster, jobs, last_job, files, .. } = manifest;
    Ok(BackupSummary { file, bytes: Bytes(bytes), files: files.len() as u64, cluster, jobs, last_job })
}

/// Root could read everything, but would leave files in the state directory that its head cannot use.
fn check_owner(state: &Path) -> Result<(), BackupError> {
    match fs::metadata(state) {
        Ok(found) if found.uid() != geteuid().as_raw() => {
            Err(BackupError::OtherAccount { path: state.to_owned(), owner: found.uid() })
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(HeadError::NoJournal(state.to_owned()).into())
        }
        Err(error) => Err(BackupError::io(state)(error)),
    }
}

/// The directory of the file, and the file in it.
fn check_file(state: &Path, file: &Path, existing: ExistingFile) -> Result<(PathBuf, PathBuf), BackupError> {
    let no_file = || BackupError::NoFile(file.to_owned());
    let name = file.file_name().ok_or_else(no_file)?;
    let above = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = above.canonicalize().map_err(BackupError::io(above))?;
    let (state, file) = (state.canonicalize().map_err(BackupError::io(state))?, folder.join(name));
    if folder.starts_with(&state) {
        return Err(BackupError::InsideState(file));
    }
    match fs::symlink_metadata(&file) {
        Ok(found) if found.is_dir() => Err(no_file()),
        Ok(_) if existing == ExistingFile::Keep => Err(BackupError::Exists(file)),
        Ok(_) | Err(_) => Ok((folder, file)),
    }
}

/// Writes the archive, and anew where a file changed in between.
fn write_unchanging(
    state: &Path,
    journal: &Path,
    draft: &Path,
    manifest: &mut BackupManifest,
) -> Result<File, BackupError> {
    let mut changed = PathBuf::new();
    for _ in 0..ATTEMPTS {
        manifest.files = entries(state, journal)?;
        let mut open = OpenOptions::new();
        let file = open.write(true).create(true).truncate(true).mode(0o600).open(draft);
        let file = file.map_err(BackupError::io(draft))?;
        match write(state, journal, file, manifest).map_err(BackupError::io(draft))? {
            Written::Complete(file) => return Ok(file),
            Written::Changed(path) => changed = path,
        }
    }
    Err(BackupError::Changed(changed))
}

/// Every file with its size and digest, the journal first.
fn entries(state: &Path, journal: &Path) -> Result<Vec<ManifestEntry>, BackupError> {
    let mut entries = Vec::new();
    for path in std::iter::once(JOURNAL.to_owned()).chain(list(state)?) {
        let source = source_of(&path, state, journal);
        let file = match File::open(&source) {
            // It was given up after the list was made: no job that has not ended needs it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file.map_err(BackupError::io(&source))?,
        };
        let mut reader = HashingReader::new(file);
        io::copy(&mut reader, &mut io::sink()).map_err(BackupError::io(&source))?;
        let (size, sha256) = reader.finish();
        entries.push(ManifestEntry { path, size, sha256 });
    }
    Ok(entries)
}

fn source_of(path: &str, state: &Path, journal: &Path) -> PathBuf {
    if path == JOURNAL { journal.to_owned() } else { state.join(path) }
}

enum Written {
    Complete(File),
    /// This file is no longer what the manifest says.
    Changed(PathBuf),
}

fn write(state: &Path, journal: &Path, file: File, manifest: &BackupManifest) -> io::Result<Written> {
    let mut archive = Builder::new(BufWriter::with_capacity(1 << 20, file));
    let text = serde_json::to_vec_pretty(manifest)?;
    append(&mut archive, MANIFEST, text.len() as u64, text.as_slice())?;
    for ManifestEntry { path, size, sha256 } in &manifest.files {
        let source = source_of(path, state, journal);
        let file = match File::open(&source) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Written::Changed(source)),
            file => file?,
        };
        // One byte more than expected shows that the file has grown.
        let mut reader = HashingReader::new(file.take(size.saturating_add(1)));
        append(&mut archive, path, *size, &mut reader)?;
        if reader.finish() != (*size, *sha256) {
            return Ok(Written::Changed(source));
        }
    }
    let mut buffered = archive.into_inner()?;
    buffered.flush()?;
    Ok(Written::Complete(buffered.into_inner().map_err(io::IntoInnerError::into_error)?))
}

fn append(archive: &mut Builder<impl Write>, path: &str, size: u64, content: impl Read) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o600);
    header.set_size(size);
    archive.append_data(&mut header, path, content)
}

//! Reads what is to be sent and writes it as a stream, by its end or the reason why there is none.

use std::io::{self, Read as _, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use cohabit_types::{Bytes, CopyDepth};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use serde::{Deserialize, Serialize};

use crate::entry::{CONTENT_BYTES, TransferEntry, TransferFailure, encode};
use crate::limits::MOST_ENTRIES;
use crate::path::TransferPath;
use crate::protected::ProtectedPlaces;
use crate::refused::Refused;
use crate::send_error::{SendError, kind_of};
use crate::source::{LastLink, PlacedFile, Source};
use crate::walk::walk;

/// What to send. It is read with the rights of the process that sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransferTask {
    /// Where a relative path begins.
    pub base: PathBuf,
    /// A file or a directory. A link at its end is followed.
    pub path: PathBuf,
    /// Whether directories are sent.
    pub depth: CopyDepth,
    /// The most bytes of content.
    pub limit: Bytes,
    /// Directories of which nothing is sent.
    pub private: Vec<PathBuf>,
    /// Directories inside them of which it is.
    pub open: Vec<PathBuf>,
}

/// Sends it. The receiver hears of what is wrong with it.
///
/// # Errors
/// When the output cannot be written.
pub fn send(task: &TransferTask, output: impl Write) -> io::Result<()> {
    let mut sender = Sender { output, limit: task.limit, sent: 0 };
    let last = match sender.send(task) {
        Ok(()) => TransferEntry::End,
        Err(SendError::Failure(kind, message)) => TransferEntry::Failed { kind, message },
        Err(SendError::Output(error)) => return Err(error),
    };
    sender.output.write_all(&encode(&last)?)?;
    sender.output.flush()
}

struct Sender<W> {
    output: W,
    limit: Bytes,
    /// Bytes of content so far.
    sent: u64,
}

/// What was found before anything is sent.
#[derive(Debug, Default)]
struct Extent {
    entries: u64,
    files: u64,
    bytes: u64,
}

impl<W: Write> Sender<W> {
    fn send(&mut self, task: &TransferTask) -> Result<(), SendError> {
        let protected = ProtectedPlaces { private: task.private.clone(), open: task.open.clone() };
        let (root, shown) = (TransferPath::default(), task.path.display());
        match find(task, &protected)? {
            Source::File(file) => {
                let extent = Extent { entries: 1, files: 1, bytes: size(&file) };
                self.begin(&extent)?;
                let opened = file.open().map_err(|error| SendError::of_path(&task.path, &error))?;
                self.file(&root, opened)
            }
            Source::Directory(_) if task.depth == CopyDepth::File => Err(SendError::Failure(
                TransferFailure::Directory,
                format!("'{shown}' is a directory: copy it with --recursive (-r)"),
            )),
            Source::Directory(directory) => {
                let mut extent = Extent::default();
                let limit = self.limit;
                walk(&directory, &root, &protected, &mut 0, &mut |_, source| extent.add(source, limit))?;
                self.begin(&extent)?;
                self.write(&TransferEntry::Directory { path: root.clone(), mode: directory.permissions() })?;
                walk(&directory, &root, &protected, &mut 0, &mut |path, source| self.entry(path, source))
            }
            Source::Link(_) => Err(SendError::Failure(
                TransferFailure::NotFound,
                format!("'{shown}' is a link that leads nowhere"),
            )),
            Source::Refused(Refused { kind, why }) => {
                Err(SendError::Failure(kind, format!("'{shown}' is not copied: {why}")))
            }
        }
    }

    fn begin(&mut self, extent: &Extent) -> Result<(), SendError> {
        extent.check(self.limit)?;
        self.write(&TransferEntry::Extent { files: extent.files, bytes: extent.bytes })
    }

    fn entry(&mut self, path: &TransferPath, source: &Source) -> Result<(), SendError> {
        let path = path.clone();
        let skipped = match source {
            Source::Directory(found) => {
                return self.write(&TransferEntry::Directory { path, mode: found.permissions() });
            }
            Source::Link(target) => return self.write(&TransferEntry::Link { path, target: target.clone() }),
            Source::File(found) => match found.open() {
                Ok(opened) => return self.file(&path, opened),
                Err(error) => format!("it cannot be read: {error}"),
            },
            Source::Refused(refused) => refused.why.clone(),
        };
        self.write(&TransferEntry::Skipped { path, why: skipped })
    }

    /// Sends a file as long as it is now, whatever is appended meanwhile.
    fn file(&mut self, path: &TransferPath, mut file: std::fs::File) -> Result<(), SendError> {
        let found = fstat(&file).map_err(|error| SendError::of_file(path, &error.into()))?;
        let size = u64::try_from(found.st_size).unwrap_or_default();
        self.sent = self.sent.saturating_add(size);
        if self.sent > self.limit.0 {
            return Err(SendError::over_limit(self.sent, self.limit));
        }
        let (mode, modified) = (found.st_mode & 0o777, found.st_mtime);
        let inode = found.st_ino;
        self.write(&TransferEntry::File { path: path.clone(), mode, modified, inode, size })?;
        let (mut left, mut buffer) = (size, vec![0; CONTENT_BYTES]);
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let read = match file.read(&mut buffer[..wanted]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(|error| SendError::of_file(path, &error))?,
            };
            if read == 0 {
                return self.write(&TransferEntry::Shrunk);
            }
            self.write(&TransferEntry::Content(buffer[..read].to_vec()))?;
            left -= read as u64;
        }
        Ok(())
    }

    fn write(&mut self, entry: &TransferEntry) -> Result<(), SendError> {
        Ok(self.output.write_all(&encode(entry)?)?)
    }
}

/// What the task names.
fn find(task: &TransferTask, protected: &ProtectedPlaces) -> Result<Source, SendError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let found = if task.path.is_absolute() {
        Source::find(CWD, &task.path, LastLink::Followed, protected)
    } else {
        let base = openat(CWD, &task.base, flags, Mode::empty()).map_err(|error| {
            let (base, error) = (task.base.display(), io::Error::from(error));
            let message = format!(
                "the working directory '{base}' of the job cannot be entered: {error}. Give an absolute path"
            );
            SendError::Failure(kind_of(&error), message)
        })?;
        Source::find(base.as_fd(), &task.path, LastLink::Followed, protected)
    };
    found.map_err(|error| match task.path.is_absolute() {
        true => SendError::of_path(&task.path, &error),
        false => SendError::of_path(&task.base.join(&task.path), &error),
    })
}

fn size(file: &PlacedFile) -> u64 {
    u64::try_from(file.found.st_size).unwrap_or_default()
}

impl Extent {
    fn add(&mut self, source: &Source, limit: Bytes) -> Result<(), SendError> {
        self.entries += 1;
        if let Source::File(file) = source {
            self.files += 1;
            self.bytes = self.bytes.saturating_add(size(file));
        }
        self.check(limit)
    }

    fn check(&self, limit: Bytes) -> Result<(), SendError> {
        match self {
            _ if self.entries > MOST_ENTRIES => Err(SendError::too_many()),
            _ if self.bytes > limit.0 => Err(SendError::over_limit(self.bytes, limit)),
            _ => Ok(()),
        }
    }
}

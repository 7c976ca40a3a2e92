//! Takes a stream from a node and writes what is in it. The node may send anything: nothing is written but
//! below the target, and no more than was agreed.

use std::io::{self, Write};
use std::path::PathBuf;

use cohabit_types::Bytes;

use crate::decoder::{DecodeError, Decoder};
use crate::entry::{TransferEntry, TransferFailure};
use crate::limits::MOST_ENTRIES;
use crate::path::TransferPath;
use crate::tree_writer::{PartialFile, TreeWriter};

/// The most skipped entries that are remembered with their reasons.
const MOST_REASONS: usize = 20;

/// Where what is received goes.
pub enum Target {
    /// To this path: a file there is replaced, and a directory gets what is in the one that is sent.
    Path(PathBuf),
    /// The content of one file, to this.
    Stream(Box<dyn Write + Send>),
}

/// What is received at most.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveLimits {
    /// Bytes of content.
    pub bytes: Bytes,
}

/// What was received.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Received {
    /// Files that are there now.
    pub files: u64,
    /// Links that are there now.
    pub links: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// How many bytes were announced.
    pub announced: u64,
    /// How many entries were left out.
    pub skipped: u64,
    /// The first of them, with the reasons.
    pub reasons: Vec<(String, String)>,
}

/// Why nothing more is received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The sender could not read it.
    #[error("{message}")]
    Sender {
        /// Which kind of reason.
        kind: TransferFailure,
        /// In words.
        message: String,
    },
    /// It cannot be written here.
    #[error("cannot write '{path}': {source}")]
    Write {
        /// Where, below the target.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The stream to which it goes does not take it.
    #[error("cannot write the output: {0}")]
    Stream(io::Error),
    /// The node sent something else than what it says that it sends.
    #[error("the node sent what cannot be used: {0}")]
    Invalid(String),
    /// More comes than was agreed.
    #[error("more than {0} would be copied: raise the limit with --limit")]
    TooLarge(Bytes),
    /// The stream ended in between.
    #[error("the copy was cut off before its end")]
    CutOff,
}

/// Takes a stream, piece by piece. Dropped before the end, it removes the file that is not whole.
pub struct Receiver {
    decoder: Decoder,
    writer: EntryWriter,
}

/// Writes one entry after the other.
struct EntryWriter {
    output: Output,
    limits: ReceiveLimits,
    entries: u64,
    current: Option<CurrentFile>,
    has_ended: bool,
    received: Received,
}

enum Output {
    Tree(TreeWriter),
    Stream(Box<dyn Write + Send>),
}

/// The file whose content comes.
struct CurrentFile {
    path: TransferPath,
    modified: i64,
    /// Bytes that are to come.
    left: u64,
    /// None where it goes to a stream.
    partial: Option<PartialFile>,
}

impl From<DecodeError> for ReceiveError {
    fn from(error: DecodeError) -> ReceiveError {
        ReceiveError::Invalid(error.to_string())
    }
}

impl Receiver {
    /// What comes goes there.
    #[must_use]
    pub fn new(target: Target, limits: ReceiveLimits) -> Receiver {
        let output = match target {
            Target::Path(path) => Output::Tree(TreeWriter::new(path)),
            Target::Stream(stream) => Output::Stream(stream),
        };
        let received = Received::default();
        let writer = EntryWriter { output, limits, entries: 0, current: None, has_ended: false, received };
        Receiver { decoder: Decoder::default(), writer }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// Why nothing more is taken.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), ReceiveError> {
        let writer = &mut self.writer;
        self.decoder.take(bytes, |entry| writer.take(entry))
    }

    /// What was received so far.
    #[must_use]
    pub const fn received(&self) -> &Received {
        &self.writer.received
    }

    /// To be called when no more bytes come. Returns what was received.
    ///
    /// # Errors
    /// [`ReceiveError::CutOff`] if more should have come.
    pub fn finish(self) -> Result<Received, ReceiveError> {
        if !self.writer.has_ended || !self.decoder.is_empty() {
            return Err(ReceiveError::CutOff);
        }
        let Receiver { writer: EntryWriter { output, received, .. }, .. } = self;
        match output {
            Output::Tree(tree) => {
                let failed = |source| ReceiveError::Write { path: ".".to_owned(), source };
                tree.finish().map_err(failed)?;
            }
            Output::Stream(mut stream) => stream.flush().map_err(ReceiveError::Stream)?,
        }
        Ok(received)
    }
}

impl EntryWriter {
    fn take(&mut self, entry: TransferEntry) -> Result<(), ReceiveError> {
        if self.has_ended {
            return Err(invalid("an entry behind the last one"));
        }
        match entry {
            TransferEntry::Content(bytes) => return self.content(&bytes),
            TransferEntry::Shrunk => return self.shrunk(),
            TransferEntry::Failed { kind, message } => return Err(ReceiveError::Sender { kind, message }),
            TransferEntry::Extent { .. }
            | TransferEntry::Directory { .. }
            | TransferEntry::File { .. }
            | TransferEntry::Link { .. }
            | TransferEntry::Skipped { .. }
            | TransferEntry::End => {}
        }
        if self.current.is_some() {
            return Err(invalid("an entry in the midst of a file"));
        }
        self.entries += 1;
        // The extent, the directory that was named and the end are entries, too.
        if self.entries > MOST_ENTRIES + 3 {
            return Err(invalid("more entries than are copied at once"));
        }
        match entry {
            TransferEntry::Extent { bytes, .. } => self.extent(bytes),
            TransferEntry::Directory { path, mode } => self.directory(&path, mode),
            TransferEntry::File { path, mode, modified, inode, size } => {
                self.file(path, mode, inode, modified, size)
            }
            TransferEntry::Link { path, target } => self.link(path, target),
            TransferEntry::Skipped { path, why } => {
                self.skip(&path, why);
                Ok(())
            }
            TransferEntry::Content(_) | TransferEntry::Shrunk | TransferEntry::Failed { .. } => Ok(()),
            TransferEntry::End => {
                self.has_ended = true;
                Ok(())
            }
        }
    }

    fn extent(&mut self, bytes: u64) -> Result<(), ReceiveError> {
        self.received.announced = bytes;
        self.check(bytes)
    }

    fn check(&self, bytes: u64) -> Result<(), ReceiveError> {
        match bytes <= self.limits.bytes.0 {
            true => Ok(()),
            false => Err(ReceiveError::TooLarge(self.limits.bytes)),
        }
    }

    fn directory(&mut self, path: &TransferPath, mode: u32) -> Result<(), ReceiveError> {
        match &mut self.output {
            Output::Tree(tree) => tree.directory(path, mode).map_err(|error| failed(path, error)),
            Output::Stream(_) => Err(invalid("a directory, where one file was asked for")),
        }
    }

    fn file(
        &mut self,
        path: TransferPath,
        mode: u32,
        inode: u64,
        modified: i64,
        size: u64,
    ) -> Result<(), ReceiveError> {
        self.check(self.received.bytes.saturating_add(size))?;
        let partial = match &mut self.output {
            Output::Tree(tree) => Some(tree.file(&path, mode, inode).map_err(|error| failed(&path, error))?),
            Output::Stream(_) if self.received.files > 0 => {
                return Err(invalid("a second file, where one was asked for"));
            }
            Output::Stream(_) => None,
        };
        self.current = Some(CurrentFile { path, modified, left: size, partial });
        self.keep_whole()
    }

    fn content(&mut self, bytes: &[u8]) -> Result<(), ReceiveError> {
        let current = self.current.as_mut().ok_or_else(|| invalid("content of no file"))?;
        let left = current.left.checked_sub(bytes.len() as u64);
        current.left = left.ok_or_else(|| invalid("more content than the file has"))?;
        match (&mut current.partial, &mut self.output) {
            (Some(partial), _) => partial.write(bytes).map_err(|error| failed(&current.path, error))?,
            (None, Output::Stream(stream)) => stream.write_all(bytes).map_err(ReceiveError::Stream)?,
            (None, Output::Tree(_)) => {}
        }
        self.received.bytes += bytes.len() as u64;
        self.keep_whole()
    }

    /// Keeps the file whose content has come.
    fn keep_whole(&mut self) -> Result<(), ReceiveError> {
        let Some(CurrentFile { path, modified, left: 0, partial }) =
            self.current.take_if(|current| current.left == 0)
        else {
            return Ok(());
        };
        if let Some(partial) = partial {
            partial.keep(modified).map_err(|error| failed(&path, error))?;
        }
        self.received.files += 1;
        Ok(())
    }

    fn shrunk(&mut self) -> Result<(), ReceiveError> {
        let current = self.current.take().ok_or_else(|| invalid("the end of no file"))?;
        let why = "it became shorter while it was read: copy it again".to_owned();
        match &self.output {
            Output::Stream(_) => Err(ReceiveError::Sender {
                kind: TransferFailure::Failed,
                message: format!("the file: {why}"),
            }),
            Output::Tree(_) => {
                self.skip(&current.path, why);
                Ok(())
            }
        }
    }

    fn link(&mut self, path: TransferPath, target: Vec<u8>) -> Result<(), ReceiveError> {
        match &mut self.output {
            Output::Tree(tree) => match tree.link(path.clone(), target) {
                Ok(()) => self.received.links += 1,
                Err(why) => self.skip(&path, why.to_owned()),
            },
            Output::Stream(_) => return Err(invalid("a link, where one file was asked for")),
        }
        Ok(())
    }

    fn skip(&mut self, path: &TransferPath, why: String) {
        self.received.skipped += 1;
        if self.received.reasons.len() < MOST_REASONS {
            self.received.reasons.push((path.to_string(), why));
        }
    }
}

fn invalid(what: &str) -> ReceiveError {
    ReceiveError::Invalid(what.to_owned())
}

fn failed(path: &TransferPath, source: io::Error) -> ReceiveError {
    ReceiveError::Write { path: path.to_string(), source }
}

//! Fetches the files of a snapshot from the head, over the link of this worker.
//!
//! Files that are here already are not fetched. A file arrives piece by piece and is stored once its content
//! has its hash, so what was fetched before a link broke is not lost.

use std::sync::Arc;

use cohabit_actor::blocking;
use cohabit_host::files::is_of_machine;
use cohabit_net::{WorkerReports, context_for};
use cohabit_store::{ContentError, ContentStore, Manifest};
use cohabit_types::{CodeRequest, CodeSnapshot, ContentHash, ContentPiece, JobId, Refusal, Span};
use futures::stream::{self, TryStreamExt};

use super::{Abandoned, CodeDirectoryError};

/// How long the head may take for one piece.
const PIECE_LIMIT: Span = Span::from_secs(120);

/// Files that are fetched at once, so that small ones do not wait for each other's answer.
const AT_ONCE: usize = 4;

/// Why a snapshot could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The head has no such file any more.
    #[error("{0}")]
    Refused(Refusal),
    /// The link broke, or the head did not answer in time.
    #[error("the head does not answer: {0}")]
    Link(String),
    /// Nobody waits for it any more.
    #[error("nobody waits for it any more")]
    Abandoned,
    /// This host could not store it.
    #[error(transparent)]
    Store(#[from] ContentError),
    /// The copy could not be made.
    #[error(transparent)]
    Copy(#[from] CodeDirectoryError),
}

impl FetchError {
    /// Whether this host is the cause, or the network, and not the snapshot.
    pub(crate) fn is_of_machine(&self) -> bool {
        match self {
            FetchError::Refused(_) => false,
            FetchError::Link(_) | FetchError::Abandoned => true,
            FetchError::Copy(CodeDirectoryError::File(error)) => error.is_of_machine(),
            FetchError::Store(error) | FetchError::Copy(CodeDirectoryError::Store(error)) => match error {
                ContentError::Io { source, .. } => is_of_machine(source),
                ContentError::Manifest(_) | ContentError::OutOfBounds(_) => false,
                ContentError::Full { .. }
                | ContentError::Missing(_)
                | ContentError::Damaged(_)
                | ContentError::WrongContent(_) => true,
            },
        }
    }
}

/// Fetches the code of one job.
#[derive(Debug, Clone)]
pub(crate) struct Fetcher {
    pub(crate) head: WorkerReports,
    pub(crate) stored: Arc<ContentStore>,
    pub(crate) job: JobId,
    pub(crate) abandoned: Abandoned,
}

impl Fetcher {
    /// The list of the files of a snapshot.
    pub(crate) async fn manifest(&self, code: &CodeSnapshot) -> Result<Manifest, FetchError> {
        let hash = code.manifest;
        for hash in self.absent(vec![hash]).await? {
            self.fetch(hash).await?;
        }
        let stored = Arc::clone(&self.stored);
        Ok(blocking(move || stored.manifest(&hash)).await?)
    }

    /// Fetches these files.
    pub(crate) async fn fetch_all(&self, files: Vec<ContentHash>) -> Result<(), FetchError> {
        let fetched = stream::iter(files.into_iter().map(|hash| Ok(self.fetch(hash))));
        fetched.try_buffer_unordered(AT_ONCE).try_for_each(|()| async { Ok(()) }).await
    }

    /// Those of these files that are not here, or damaged. One trip to a blocking thread for all: an array of
    /// short jobs asks for the same files again and again.
    pub(crate) async fn absent(&self, files: Vec<ContentHash>) -> Result<Vec<ContentHash>, FetchError> {
        let stored = Arc::clone(&self.stored);
        Ok(blocking(move || stored.absent(&files)).await?)
    }

    /// Fetches a file.
    async fn fetch(&self, hash: ContentHash) -> Result<(), FetchError> {
        let mut offset = 0;
        loop {
            if self.abandoned.is_set() {
                return Err(FetchError::Abandoned);
            }
            let piece = self.piece(hash, offset).await?;
            let (size, stored) = (piece.size, Arc::clone(&self.stored));
            let written = blocking(move || stored.put(&[piece])).await?;
            offset = written.first().copied().unwrap_or(size);
            if offset >= size {
                return Ok(());
            }
        }
    }

    async fn piece(&self, file: ContentHash, offset: u64) -> Result<ContentPiece, FetchError> {
        let request = CodeRequest { job: self.job, file, offset };
        let asked = self.head.read_code(context_for(PIECE_LIMIT), request).await;
        let piece = asked.map_err(|error| FetchError::Link(error.to_string()))?;
        let piece = piece.map_err(FetchError::Refused)?;
        // What does not answer the question would be asked for again and again.
        let is_answer =
            piece.file == file && piece.offset == offset && (!piece.bytes.is_empty() || piece.size == offset);
        match is_answer {
            true => Ok(piece),
            false => Err(FetchError::Link("it answered another question: report this as a bug".into())),
        }
    }
}

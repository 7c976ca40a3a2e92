//! The code of a job, as the head stores it.

use cohabit_client::types::{CodeSnapshot, JobId};
use cohabit_client::{Client, FileContent, Manifest};
use cohabit_console::CommandError;

/// The code that a job was submitted with.
pub(super) struct StoredCode {
    pub(super) client: Client,
    pub(super) job: JobId,
    pub(super) snapshot: CodeSnapshot,
    pub(super) manifest: Manifest,
}

impl StoredCode {
    /// What a file of it contains; the target of a link.
    pub(super) async fn read(&self, file: &FileContent) -> Result<Vec<u8>, CommandError> {
        match file {
            FileContent::Link(target) => Ok(target.clone().into_bytes()),
            FileContent::Stored { hash, .. } => Ok(self.client.code_file(self.job, *hash).await?),
        }
    }
}

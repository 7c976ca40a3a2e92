//! Reads the code of a job from the head, and checks that it is what was asked for.

use cohabit_store::{Manifest, hash_of};
use cohabit_types::{CodeRequest, CodeSnapshot, ContentHash, JobId};

use crate::Error;
use crate::call::{Client, short_call_context};
use crate::connect::on_blocking_thread;
use crate::link::HeadConnection;

impl Client {
    /// The files of the snapshot that a job runs in, as its record says.
    ///
    /// # Errors
    /// [`Error::Refused`] if the head does not store it any more, [`Error::NotAllowed`] for jobs of others.
    pub async fn code_manifest(&self, job: JobId, code: &CodeSnapshot) -> Result<Manifest, Error> {
        let encoded = self.code_file(job, code.manifest).await?;
        on_blocking_thread(move || {
            Manifest::decode(&encoded).map_err(|error| Error::Protocol(error.to_string()))
        })
        .await
    }

    /// The content of a file that this manifest names.
    ///
    /// # Errors
    /// [`Error::Refused`] if the head does not store it any more, [`Error::NotAllowed`] for jobs of others.
    pub async fn code_file(&self, job: JobId, file: ContentHash) -> Result<Vec<u8>, Error> {
        let wrong = || Error::Protocol(format!("the head sent something else for the file {file}"));
        let mut content = Vec::new();
        loop {
            let offset = content.len() as u64;
            let request = CodeRequest { job, file, offset };
            let ask =
                |to: HeadConnection| async move { to.service.read_code(short_call_context(), request).await };
            let piece = self.call(ask).await?;
            let is_next = piece.file == file && piece.offset == offset;
            content.extend(&piece.bytes);
            let length = content.len() as u64;
            if !is_next || length > piece.size || (piece.bytes.is_empty() && length < piece.size) {
                return Err(wrong());
            }
            if length == piece.size {
                break;
            }
        }
        let (content, hash) = on_blocking_thread(move || {
            let hash = hash_of(&content);
            Ok((content, hash))
        })
        .await?;
        if hash == file { Ok(content) } else { Err(wrong()) }
    }
}

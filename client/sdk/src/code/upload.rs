//! Uploads a folder: asks which files the head lacks, and sends those, the list of all files last.
//!
//! Everything may be sent twice. A piece that the head has is passed over, so an upload whose link broke goes
//! on where it was, and one that was given up is continued by the next.

use std::collections::BTreeMap;

use cohabit_store::FileContent;
use cohabit_types::{Bytes, CodeSnapshot, ContentHash, ContentPiece, PIECE_BYTES, RefusalCode};

use super::content_reader::{Content, ContentReader, ContentSource};
use super::error::CodeError;
use super::folder::CodeFolder;
use crate::call::{Client, short_call_context};
use crate::connect::on_blocking_thread;
use crate::link::HeadConnection;
use crate::{Error, JobHandle, Submission};

/// How many files one question names.
const HASHES_PER_CALL: usize = 10_000;

/// How much content one message carries.
const BYTES_PER_CALL: u64 = 2 * PIECE_BYTES as u64;

/// How many files it carries parts of.
const FILES_PER_CALL: usize = 1_000;

/// How often a folder that changes is scanned, the scan before the upload included.
const MOST_SCANS: u32 = 3;

/// How often the head may fall back in a file, as it does when it was restarted.
const MOST_SETBACKS: u32 = 8;

/// What an upload came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeUpload {
    /// The snapshot that jobs can run in now.
    pub snapshot: CodeSnapshot,
    /// Files that the head lacked.
    pub files: u64,
    /// Their content.
    pub bytes: Bytes,
}

impl Client {
    /// Uploads what the head lacks of a folder. If a file has changed since the scan, the folder is scanned
    /// again, and the snapshot is of that scan.
    ///
    /// # Errors
    /// [`Error::Code`] with [`CodeError::Changing`] if a file changed each time; [`Error::NotAllowed`] if the
    /// head has no room for it; else those of [`CodeFolder::scan`] and of the link.
    pub async fn upload_code(&self, code: &CodeFolder) -> Result<CodeUpload, Error> {
        let mut folder = code.clone();
        let mut scans = 1;
        loop {
            match self.send_folder(&folder).await {
                Err(error) if scans < MOST_SCANS && may_be_a_change(&error) => {
                    folder = folder.scan_again().await?;
                    scans += 1;
                }
                result => return result,
            }
        }
    }

    /// Uploads a folder and submits a job that runs in a snapshot of it. The head keeps files of no job for a
    /// while only: if it has given some up before the submission arrives, both are repeated once.
    ///
    /// # Errors
    /// Those of [`Client::upload_code`] and [`Client::submit`], and [`Error::InvalidJob`] if the working
    /// directory of the job does not lie in the folder.
    pub async fn submit_with_code(
        &self,
        submission: &Submission,
        code: &CodeFolder,
    ) -> Result<(JobHandle, CodeUpload), Error> {
        match self.upload_and_submit(submission, code).await {
            Err(Error::Refused(refusal)) if refusal.code == RefusalCode::NotFound => {
                self.upload_and_submit(submission, code).await
            }
            result => result,
        }
    }

    async fn upload_and_submit(
        &self,
        submission: &Submission,
        code: &CodeFolder,
    ) -> Result<(JobHandle, CodeUpload), Error> {
        let upload = self.upload_code(code).await?;
        let submission = submission.clone().with_code(upload.snapshot.clone())?;
        Ok((self.submit(&submission).await?, upload))
    }

    async fn send_folder(&self, folder: &CodeFolder) -> Result<CodeUpload, Error> {
        let (manifest, encoded) = folder.manifest().encode();
        let mut files = contents(folder);
        let hashes: Vec<ContentHash> = files.keys().copied().chain([manifest]).collect();
        let missing = self.missing_content(&hashes).await?;
        let lacking: Vec<Content> = missing.iter().filter_map(|hash| files.remove(hash)).collect();
        let bytes = Bytes(lacking.iter().map(|file| file.size).fold(0, u64::saturating_add));
        let count = lacking.len() as u64;
        self.send_contents(lacking).await?;
        if missing.contains(&manifest) {
            let (size, name) = (encoded.len() as u64, "the list of files".to_owned());
            let source = ContentSource::Memory(encoded);
            self.send_contents(vec![Content { hash: manifest, size, name, source }]).await?;
        }
        Ok(CodeUpload { snapshot: folder.snapshot(), files: count, bytes })
    }

    async fn missing_content(&self, hashes: &[ContentHash]) -> Result<Vec<ContentHash>, Error> {
        let mut missing = Vec::new();
        for page in hashes.chunks(HASHES_PER_CALL) {
            let ask = |to: HeadConnection| {
                let page = page.to_vec();
                async move { to.service.missing_content(short_call_context(), page).await }
            };
            missing.extend(self.call(ask).await?);
        }
        Ok(missing)
    }

    /// Sends small files several at a time, large ones piece by piece.
    async fn send_contents(&self, contents: Vec<Content>) -> Result<(), Error> {
        let (small, large): (Vec<_>, Vec<_>) =
            contents.into_iter().partition(|content| content.size <= PIECE_BYTES as u64);
        for batch in batches(small) {
            let read = batch.clone();
            let pieces = on_blocking_thread(move || Ok(read_whole(read)?)).await?;
            let written = self.put_content(&pieces).await?;
            for (content, written) in batch.into_iter().zip(written) {
                self.send_rest(content, written).await?;
            }
        }
        for content in large {
            self.send_rest(content, 0).await?;
        }
        Ok(())
    }

    /// Sends what comes after this offset.
    async fn send_rest(&self, content: Content, mut offset: u64) -> Result<(), Error> {
        if offset >= content.size {
            return Ok(());
        }
        let (size, name) = (content.size, content.name.clone());
        let mut reader = on_blocking_thread(move || Ok(ContentReader::open(content)?)).await?;
        let mut setbacks = 0;
        while offset < size {
            let pieces;
            (reader, pieces) = on_blocking_thread(move || Ok(read_pieces(reader, offset, size)?)).await?;
            let written = self.put_content(&pieces).await?.last().copied().unwrap_or(0);
            setbacks += u32::from(written <= offset);
            if setbacks > MOST_SETBACKS {
                let message = format!("the head stays at byte {written} of {size} of '{name}'");
                return Err(Error::Protocol(message));
            }
            offset = written;
        }
        Ok(())
    }

    /// Sends pieces; returns where the next of each file begins.
    async fn put_content(&self, pieces: &[ContentPiece]) -> Result<Vec<u64>, Error> {
        let ask = |to: HeadConnection| {
            let pieces = pieces.to_vec();
            async move { to.service.put_content(short_call_context(), pieces).await }
        };
        let written = self.call(ask).await?;
        match written.len() == pieces.len() {
            true => Ok(written),
            false => Err(Error::Protocol("the answer of the head does not fit the pieces sent".into())),
        }
    }
}

/// Whether the reason may be that a file is no longer what it was when it was hashed.
fn may_be_a_change(error: &Error) -> bool {
    match error {
        Error::Code(error) => matches!(error, CodeError::Changing(_)),
        Error::Refused(refusal) => refusal.code == RefusalCode::Invalid,
        Error::Unreachable(_)
        | Error::NotAllowed(_)
        | Error::Link(_)
        | Error::Unconfirmed { .. }
        | Error::InvalidJob(_)
        | Error::Configuration(_)
        | Error::Protocol(_) => false,
    }
}

/// What the files of a folder contain, once each.
fn contents(folder: &CodeFolder) -> BTreeMap<ContentHash, Content> {
    let files = folder.manifest().files().iter().filter_map(|file| match file.content {
        FileContent::Link(_) => None,
        FileContent::Stored { hash, size, .. } => {
            let source = ContentSource::File(folder.source_of(&file.path));
            Some((hash, Content { hash, size, name: file.path.clone(), source }))
        }
    });
    files.collect()
}

/// Groups of small files that fit one message.
fn batches(contents: Vec<Content>) -> Vec<Vec<Content>> {
    let (mut batches, mut bytes) = (Vec::<Vec<Content>>::new(), 0);
    for content in contents {
        bytes += content.size;
        match batches.last_mut() {
            Some(batch) if bytes <= BYTES_PER_CALL && batch.len() < FILES_PER_CALL => batch.push(content),
            Some(_) | None => {
                bytes = content.size;
                batches.push(vec![content]);
            }
        }
    }
    batches
}

fn read_whole(batch: Vec<Content>) -> Result<Vec<ContentPiece>, CodeError> {
    batch.into_iter().map(|content| ContentReader::open(content)?.read_piece(0)).collect()
}

/// As many pieces as one message carries.
fn read_pieces(
    mut reader: ContentReader,
    offset: u64,
    size: u64,
) -> Result<(ContentReader, Vec<ContentPiece>), CodeError> {
    let end = size.min(offset.saturating_add(BYTES_PER_CALL));
    let starts = (offset..end).step_by(PIECE_BYTES);
    let pieces = starts.map(|offset| reader.read_piece(offset)).collect::<Result<_, _>>()?;
    Ok((reader, pieces))
}

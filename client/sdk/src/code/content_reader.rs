//! Reads the content of a file piece by piece, from wherever the head wants it, and checks that it is still
//! what was hashed.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::PathBuf;

use cohabit_store::ContentHasher;
use cohabit_types::{ContentHash, ContentPiece, PIECE_BYTES};

use super::error::CodeError;

/// Content that the head lacks.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) hash: ContentHash,
    /// In bytes.
    pub(super) size: u64,
    /// For errors.
    pub(super) name: String,
    pub(super) source: ContentSource,
}

/// Where content is read.
#[derive(Debug, Clone)]
pub(super) enum ContentSource {
    File(PathBuf),
    Memory(Vec<u8>),
}

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// Content that is being read. All methods block.
pub(super) struct ContentReader {
    content: Content,
    from: Box<dyn ReadSeek>,
    position: u64,
    /// Of everything before the position.
    hasher: ContentHasher,
}

impl ContentReader {
    /// # Errors
    /// [`CodeError::Changing`] if the file is gone.
    pub(super) fn open(content: Content) -> Result<ContentReader, CodeError> {
        let from: Box<dyn ReadSeek> = match &content.source {
            ContentSource::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
            ContentSource::File(path) => {
                Box::new(File::open(path).map_err(|error| content.unreadable(error))?)
            }
        };
        Ok(ContentReader { content, from, position: 0, hasher: ContentHasher::default() })
    }

    /// The piece that begins at this offset.
    ///
    /// # Errors
    /// [`CodeError::Changing`] if the content is not what was hashed, which shows after the last piece.
    pub(super) fn read_piece(&mut self, offset: u64) -> Result<ContentPiece, CodeError> {
        if offset < self.position {
            self.from.rewind().map_err(|error| self.content.unreadable(error))?;
            (self.position, self.hasher) = (0, ContentHasher::default());
        }
        while self.position < offset {
            self.advance(offset - self.position)?;
        }
        let Content { hash, size, .. } = self.content;
        let bytes = self.advance(size.saturating_sub(offset))?;
        if self.position == size && self.hasher.clone().finish() != hash {
            return Err(self.content.changing());
        }
        Ok(ContentPiece { file: hash, size, offset, bytes })
    }

    /// Reads so many bytes, or one piece.
    fn advance(&mut self, most: u64) -> Result<Vec<u8>, CodeError> {
        let mut bytes = vec![0; most.min(PIECE_BYTES as u64) as usize];
        self.from.read_exact(&mut bytes).map_err(|error| self.content.unreadable(error))?;
        self.hasher.add(&bytes);
        self.position += bytes.len() as u64;
        Ok(bytes)
    }
}

impl Content {
    pub(super) fn changing(&self) -> CodeError {
        CodeError::Changing(self.name.clone())
    }

    fn unreadable(&self, source: io::Error) -> CodeError {
        if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) {
            return self.changing();
        }
        CodeError::Unreadable { file: self.name.clone().into(), source }
    }
}

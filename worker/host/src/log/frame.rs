//! The format of a record in a segment: stream, time and length, then the bytes. Numbers are little-endian.

use std::io::{self, BufRead, Read};

use cohabit_types::{LogStream, Time};

/// The size of a header in bytes: 1 for the stream, 8 for the time, 4 for the length.
pub(super) const HEADER: usize = 13;

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) stream: LogStream,
    pub(crate) at: Time,
    pub(crate) length: u32,
}

impl Header {
    pub(crate) fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = match self.stream {
            LogStream::Stdout => 1,
            LogStream::Stderr => 2,
        };
        bytes[1..9].copy_from_slice(&self.at.as_micros().to_le_bytes());
        bytes[9..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; HEADER]) -> Option<Header> {
        let [stream, time_and_length @ ..] = bytes;
        let (time, length) = time_and_length.split_first_chunk().expect("twelve bytes begin with eight");
        let stream = match stream {
            1 => LogStream::Stdout,
            2 => LogStream::Stderr,
            _ => return None,
        };
        let length = u32::from_le_bytes(length.try_into().expect("twelve less eight bytes are four"));
        Some(Header { stream, at: Time::from_micros(u64::from_le_bytes(*time)), length })
    }

    /// The next header. `None` at the end, at an incomplete header, and at a damaged one.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER];
        match from.read_exact(&mut bytes) {
            Ok(()) => Ok(Header::decode(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes after the header; `None` if they are incomplete.
    pub(crate) fn read_bytes(self, from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        from.take(u64::from(self.length)).read_to_end(&mut bytes)?;
        Ok((bytes.len() == self.length as usize).then_some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = Header { stream: LogStream::Stderr, at: Time::from_micros(1 << 50), length: 77 };
        assert_eq!(Header::read(&mut &header.encode()[..]).unwrap(), Some(header));
    }

    #[test]
    fn incomplete_and_damaged_records_are_none() {
        let header = Header { stream: LogStream::Stdout, at: Time::EPOCH, length: 3 };
        assert_eq!(Header::read(&mut &header.encode()[..12]).unwrap(), None);
        assert_eq!(Header::read(&mut &[9; HEADER][..]).unwrap(), None);
        assert_eq!(header.read_bytes(&mut &b"ab"[..]).unwrap(), None);
        assert_eq!(header.read_bytes(&mut &b"abcd"[..]).unwrap(), Some(b"abc".to_vec()));
    }
}

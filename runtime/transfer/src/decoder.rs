//! Cuts the bytes of a stream into entries. Whoever sends them, no more than one entry is kept.

use cohabit_wire::codec::{CodecError, decode_within};

use crate::entry::{LENGTH_PREFIX, LONGEST_ENTRY, TransferEntry};

/// Bytes that are not a whole entry yet.
#[derive(Debug, Default)]
pub(crate) struct Decoder(Vec<u8>);

/// Why bytes mean no entry.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("an entry of {0} bytes, and none has more than {LONGEST_ENTRY}")]
    TooLong(usize),
    #[error("bytes that are no entry ({0})")]
    Undecodable(#[from] CodecError),
}

impl Decoder {
    /// Takes bytes, and passes on the entries that end in them.
    pub(crate) fn take<E: From<DecodeError>>(
        &mut self,
        mut bytes: &[u8],
        mut pass_on: impl FnMut(TransferEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            let wanted = self.wanted()?;
            let (part, rest) = bytes.split_at(bytes.len().min(wanted));
            self.0.extend_from_slice(part);
            bytes = rest;
            if self.0.len() >= LENGTH_PREFIX && self.wanted()? == 0 {
                let entry = decode_within(&self.0[LENGTH_PREFIX..], LONGEST_ENTRY);
                self.0.clear();
                pass_on(entry.map_err(DecodeError::from)?)?;
            }
        }
        Ok(())
    }

    /// Whether no entry has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes are missing of the length, or of the entry.
    fn wanted(&self) -> Result<usize, DecodeError> {
        let Some(length) = self.0.first_chunk::<LENGTH_PREFIX>() else {
            return Ok(LENGTH_PREFIX - self.0.len());
        };
        let length = u32::from_be_bytes(*length) as usize;
        match length {
            1..=LONGEST_ENTRY => Ok(length + LENGTH_PREFIX - self.0.len()),
            length => Err(DecodeError::TooLong(length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::encode;
    use crate::path::TransferPath;

    fn entries() -> Vec<TransferEntry> {
        let path = TransferPath::default().join(b"a").unwrap();
        vec![
            TransferEntry::Extent { files: 1, bytes: 3 },
            TransferEntry::File { path, mode: 0o644, modified: -1, inode: 7, size: 3 },
            TransferEntry::Content(b"abc".to_vec()),
            TransferEntry::End,
        ]
    }

    proptest! {
        #[test]
        fn entries_arrive_however_the_bytes_are_cut(cuts in prop::collection::vec(1_usize..20, 0..60)) {
            let bytes: Vec<u8> = entries().iter().flat_map(|entry| encode(entry).unwrap()).collect();
            let (mut decoder, mut got, mut rest) = (Decoder::default(), Vec::new(), &bytes[..]);
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (part, other) = rest.split_at(rest.len().min(cut));
                decoder.take(part, |entry| { got.push(entry); Ok::<_, DecodeError>(()) }).unwrap();
                rest = other;
            }
            prop_assert_eq!(got, entries());
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn any_bytes_are_entries_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let _ = Decoder::default().take(&bytes, |_| Ok::<_, DecodeError>(()));
        }
    }

    #[test]
    fn an_entry_that_is_too_long_is_refused_before_its_bytes_come() {
        for (length, bytes) in [(u32::MAX as usize, [0xff; 4]), (0, [0; 4])] {
            let taken = Decoder::default().take(&bytes, |_| Ok::<_, DecodeError>(()));
            assert!(matches!(taken, Err(DecodeError::TooLong(told)) if told == length));
        }
    }

    #[test]
    fn a_path_that_climbs_is_no_entry() {
        let entry =
            TransferEntry::Link { path: TransferPath::default().join(b"xx").unwrap(), target: Vec::new() };
        let mut bytes = encode(&entry).unwrap();
        let at = bytes.windows(2).position(|pair| pair == b"xx").unwrap();
        bytes[at..at + 2].copy_from_slice(b"..");
        let taken = Decoder::default().take(&bytes, |_| Ok::<_, DecodeError>(()));
        assert!(taken.unwrap_err().to_string().contains("no file can have the name '..'"));
    }
}

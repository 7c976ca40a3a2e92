//! Reads the frames of a write-ahead log and tells which of them are sound.
//!
//! The format is SQLite's (<https://www.sqlite.org/fileformat2.html#walformat>): a header of 32 bytes, then
//! frames of a header of 24 bytes and a page. The checksum of a frame continues that of the frame before it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

pub(super) const LOG_HEADER: usize = 32;
pub(super) const FRAME_HEADER: usize = 24;

/// The first word of a log whose checksums read words with the lowest byte first; the next number: last.
const MAGIC: u32 = 0x377f_0682;
const DEFAULT_PAGE_SIZE: usize = 4_096;
/// Where the journal's file says how large its pages are.
const PAGE_SIZE_AT: usize = 16;

/// The two sums of a checksum.
pub(super) type Checksum = (u32, u32);

/// In which order the bytes of a checksum's words come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordOrder {
    LowestFirst,
    HighestFirst,
}

/// What a log contains.
#[derive(Debug)]
pub(super) struct LogScan {
    pub(super) page_size: usize,
    pub(super) order: WordOrder,
    /// Chosen anew whenever SQLite begins the log again: other frames are of an earlier round.
    pub(super) salts: [u8; 8],
    pub(super) header: HeaderState,
    /// Up to the last sound one; none where SQLite ignores the log.
    pub(super) frames: Vec<Frame>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderState {
    Sound,
    Damaged,
}

/// A frame of the present round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The number of its page; none where its header is damaged too.
    pub(super) page: Option<u32>,
    /// Whether a commit ends with it.
    pub(super) ends_commit: bool,
    pub(super) is_sound: bool,
}

impl LogScan {
    /// Reads the log of this journal; none if there is none. Blocks.
    pub(super) fn read(journal: &Path, log: &Path) -> io::Result<Option<LogScan>> {
        let file = match File::open(log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut input = BufReader::with_capacity(1 << 18, file);
        let mut header = [0; LOG_HEADER];
        if !fill(&mut input, &mut header)? {
            return Ok(None);
        }
        let mut scan = LogScan::of_header(&header, page_size(journal)?);
        scan.read_frames(&mut input, stored(&header[24..]))?;
        Ok(Some(scan))
    }

    fn of_header(header: &[u8; LOG_HEADER], page_size: Option<usize>) -> LogScan {
        let order = match number(header) {
            magic if magic == MAGIC + 1 => WordOrder::HighestFirst,
            MAGIC => WordOrder::LowestFirst,
            // Damaged: SQLite writes as the processor does.
            _ if cfg!(target_endian = "big") => WordOrder::HighestFirst,
            _ => WordOrder::LowestFirst,
        };
        let is_sound =
            number(header) & !1 == MAGIC && checksum(order, (0, 0), &header[..24]) == stored(&header[24..]);
        let page_size = page_size.or_else(|| valid_page_size(number(&header[8..]) as usize));
        let page_size = page_size.unwrap_or(DEFAULT_PAGE_SIZE);
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        let header = if is_sound { HeaderState::Sound } else { HeaderState::Damaged };
        LogScan { page_size, order, salts, header, frames: Vec::new() }
    }

    fn read_frames(&mut self, input: &mut impl Read, first: Checksum) -> io::Result<()> {
        let mut bytes = vec![0; FRAME_HEADER + self.page_size];
        // After a damaged frame, the next one continues what its header says or what its bytes amount to.
        let mut before = [first, first];
        let mut sound = 0;
        while fill(input, &mut bytes)? {
            if self.frames.is_empty() && self.header == HeaderState::Damaged {
                self.salts.copy_from_slice(&bytes[8..16]);
            }
            let of_round = bytes[8..16] == self.salts;
            let sum = |seed| {
                let sum = checksum(self.order, seed, &bytes[..8]);
                checksum(self.order, sum, &bytes[FRAME_HEADER..])
            };
            let written = stored(&bytes[16..]);
            let is_sound = of_round && number(&bytes) > 0 && before.iter().any(|seed| sum(*seed) == written);
            let page = of_round.then(|| number(&bytes));
            let ends_commit = of_round && number(&bytes[4..]) > 0;
            before = [written, sum(before[1])];
            self.frames.push(Frame { page, ends_commit, is_sound });
            if is_sound {
                sound = self.frames.len();
            }
        }
        self.frames.truncate(sound);
        Ok(())
    }

    /// The frames before the first damaged one.
    pub(super) fn sound_start(&self) -> usize {
        match self.header {
            HeaderState::Damaged => 0,
            HeaderState::Sound => self.frames.iter().position(|it| !it.is_sound).unwrap_or(self.frames.len()),
        }
    }

    /// Whether a commit behind the damaged one proves that this is not the torn end of the log.
    pub(super) fn is_damaged_inside(&self) -> bool {
        let behind = &self.frames[self.sound_start()..];
        let end = behind.iter().position(|it| it.ends_commit);
        match self.header {
            // SQLite makes the header durable before any frame.
            HeaderState::Damaged => end.is_some(),
            HeaderState::Sound => end.is_some_and(|end| end + 1 < behind.len()),
        }
    }
}

/// The size of the journal's pages; none in a file without its header.
fn page_size(journal: &Path) -> io::Result<Option<usize>> {
    let mut header = [0; PAGE_SIZE_AT + 2];
    let found = match File::open(journal) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        opened => fill(&mut opened?, &mut header)?,
    };
    let size = u16::from_be_bytes([header[PAGE_SIZE_AT], header[PAGE_SIZE_AT + 1]]);
    // 65,536 does not fit, and is written as 1.
    let size = if size == 1 { 1 << 16 } else { usize::from(size) };
    Ok(valid_page_size(size).filter(|_| found))
}

fn valid_page_size(size: usize) -> Option<usize> {
    Some(size).filter(|size| size.is_power_of_two() && (512..=1 << 16).contains(size))
}

/// Fills the buffer; false at the end of the file.
pub(super) fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        filled => filled.map(|()| true),
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

fn stored(bytes: &[u8]) -> Checksum {
    (number(bytes), number(&bytes[4..]))
}

/// SQLite's checksum of these bytes, continued from `seed`.
pub(super) fn checksum(order: WordOrder, seed: Checksum, bytes: &[u8]) -> Checksum {
    let word = |word: [u8; 4]| match order {
        WordOrder::LowestFirst => u32::from_le_bytes(word),
        WordOrder::HighestFirst => u32::from_be_bytes(word),
    };
    let pairs = bytes.as_chunks::<8>().0.iter();
    pairs.fold(seed, |(first, second), &[a, b, c, d, e, f, g, h]| {
        let first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
        let second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
        (first, second)
    })
}

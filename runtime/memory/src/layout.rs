//! The header of an object, and the places of what follows it.
//!
//! ```text
//!  0  magic                    32  for each buffer: place, length, size and alignment of an element
//!  8  version: u32              …  body
//! 12  buffers: u32              …  buffers, each at the next multiple of 64 after what precedes it
//! 16  length of the object: u64
//! 24  length of the body: u64
//! ```
//!
//! Integers are little-endian. Elements of buffers are as in memory: all processes of an application run the
//! same file, on the same kind of processor.

use std::ops::Range;

use crate::errors::ObjectError;

/// Where buffers begin: at multiples of this, in bytes.
pub const BUFFER_ALIGNMENT: usize = 64;

/// The most bytes of a value that are not in buffers. They are copied once more than buffers are.
pub const MAX_BODY: usize = 1 << 30;

/// The most buffers of one value.
pub const MAX_BUFFERS: usize = 1 << 20;

const MAGIC: [u8; 8] = *b"COHABOBJ";
const VERSION: u32 = 1;
const HEADER: usize = 32;
const ENTRY: usize = 24;

/// What the header says of one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferEntry {
    /// Where it begins in the object.
    pub(crate) place: u64,
    /// Its bytes.
    pub(crate) length: u64,
    pub(crate) element: ElementShape,
}

/// Size and alignment of an element of a buffer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElementShape {
    pub(crate) size: u32,
    pub(crate) alignment: u32,
}

/// A header to write.
#[derive(Debug)]
pub(crate) struct PlannedLayout {
    /// The header with its entries; the body follows at once.
    pub(crate) header: Vec<u8>,
    /// Where each buffer goes.
    pub(crate) places: Vec<u64>,
    /// The length of the object.
    pub(crate) bytes: u64,
}

impl PlannedLayout {
    /// For a body of this length and these buffers.
    pub(crate) fn new(
        body: usize,
        buffers: impl ExactSizeIterator<Item = (usize, ElementShape)>,
    ) -> Result<PlannedLayout, ObjectError> {
        let count = buffers.len();
        if count > MAX_BUFFERS {
            return Err(ObjectError::TooManyBuffers { limit: MAX_BUFFERS });
        }
        let body = body as u64;
        let mut end = (HEADER + ENTRY * count) as u64 + body;
        let mut header = vec![0; HEADER];
        let mut places = Vec::with_capacity(count);
        for (length, element) in buffers {
            // No sum overflows: the buffers lie in one address space, and the padding is little.
            let entry = BufferEntry { place: next_place(end), length: length as u64, element };
            end = entry.place + entry.length;
            places.push(entry.place);
            header.extend(entry.to_bytes());
        }
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(count as u32).to_le_bytes());
        header[16..24].copy_from_slice(&end.to_le_bytes());
        header[24..32].copy_from_slice(&body.to_le_bytes());
        Ok(PlannedLayout { header, places, bytes: end })
    }
}

/// A header that was read, and fits the bytes behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckedLayout {
    pub(crate) body: Range<usize>,
    pub(crate) buffers: usize,
}

impl CheckedLayout {
    /// Checks the header of these bytes, which may come from anybody.
    pub(crate) fn read(object: &[u8]) -> Result<CheckedLayout, ObjectError> {
        let header: &[u8; HEADER] = object.first_chunk().ok_or(refusal("they have no header"))?;
        if header[..8] != MAGIC {
            return Err(refusal("they do not begin like one"));
        }
        if number(header, 8) != VERSION {
            return Err(refusal("they are of another version"));
        }
        if long_number(header, 16) != object.len() as u64 {
            return Err(refusal("they have not the stated length"));
        }
        let buffers = number(header, 12) as usize;
        if buffers > MAX_BUFFERS {
            return Err(refusal("they have too many buffers"));
        }
        let start = HEADER + ENTRY * buffers;
        let end = usize::try_from(long_number(header, 24)).ok().and_then(|length| start.checked_add(length));
        let end = end.filter(|end| *end <= object.len()).ok_or(refusal("the body ends behind them"))?;
        let layout = CheckedLayout { body: start..end, buffers };
        layout.check_buffers(object)?;
        Ok(layout)
    }

    /// Buffers lie where the writer would have put them, the last one ends where the object does.
    fn check_buffers(&self, object: &[u8]) -> Result<(), ObjectError> {
        let mut end = self.body.end as u64;
        for index in 0..self.buffers {
            let entry = self.entry(object, index).ok_or(refusal("a buffer is missing"))?;
            if entry.place != next_place(end) {
                return Err(refusal("a buffer is out of place"));
            }
            end = entry.place.checked_add(entry.length).ok_or(refusal("a buffer is too long"))?;
            if end > object.len() as u64 {
                return Err(refusal("a buffer ends behind them"));
            }
        }
        if end == object.len() as u64 { Ok(()) } else { Err(refusal("something follows")) }
    }

    /// What the header says of a buffer, if there is one of this number.
    pub(crate) fn entry(&self, object: &[u8], index: usize) -> Option<BufferEntry> {
        let at = HEADER + ENTRY * index;
        let bytes = (index < self.buffers).then(|| object.get(at..at + ENTRY)).flatten()?;
        Some(BufferEntry::from_bytes(bytes.first_chunk()?))
    }
}

impl BufferEntry {
    fn to_bytes(self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&self.place.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.element.size.to_le_bytes());
        bytes[20..].copy_from_slice(&self.element.alignment.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY]) -> BufferEntry {
        let element = ElementShape { size: number(bytes, 16), alignment: number(bytes, 20) };
        BufferEntry { place: long_number(bytes, 0), length: long_number(bytes, 8), element }
    }
}

/// Where a buffer begins after what ends here. Ends of objects are far from the largest number.
const fn next_place(end: u64) -> u64 {
    end.next_multiple_of(BUFFER_ALIGNMENT as u64)
}

const fn refusal(reason: &'static str) -> ObjectError {
    ObjectError::NotAnObject(reason)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long_number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

//! Writes a log that SQLite reads to its end: with some frames of another one, and checksums that continue.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::scan::{FRAME_HEADER, LOG_HEADER, LogScan, WordOrder, checksum, fill};

const VERSION: u32 = 3_007_000;

/// Copies those frames of a log that `is_wanted` names by their index, in their order. Blocks.
pub(super) fn rewrite(
    log: &Path,
    scan: &LogScan,
    is_wanted: impl Fn(usize) -> bool,
    to: &Path,
) -> io::Result<()> {
    let mut input = BufReader::new(File::open(log)?);
    let output = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    let mut output = BufWriter::new(output);
    input.read_exact(&mut [0; LOG_HEADER])?;
    let mut header = header(scan);
    let mut sum = checksum(scan.order, (0, 0), &header);
    header.extend(sum.0.to_be_bytes());
    header.extend(sum.1.to_be_bytes());
    output.write_all(&header)?;
    let mut frame = vec![0; FRAME_HEADER + scan.page_size];
    for index in 0..scan.frames.len() {
        if !fill(&mut input, &mut frame)? {
            break;
        }
        if !is_wanted(index) {
            continue;
        }
        sum = checksum(scan.order, sum, &frame[..8]);
        sum = checksum(scan.order, sum, &frame[FRAME_HEADER..]);
        frame[16..20].copy_from_slice(&sum.0.to_be_bytes());
        frame[20..24].copy_from_slice(&sum.1.to_be_bytes());
        output.write_all(&frame)?;
    }
    output.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// The header of a log without its checksum.
fn header(scan: &LogScan) -> Vec<u8> {
    let magic = match scan.order {
        WordOrder::LowestFirst => 0x377f_0682,
        WordOrder::HighestFirst => 0x377f_0683,
    };
    // The page size as a header has it: a damaged one may say another.
    let words = [magic, VERSION, scan.page_size as u32, 0];
    words.into_iter().flat_map(u32::to_be_bytes).chain(scan.salts).collect()
}

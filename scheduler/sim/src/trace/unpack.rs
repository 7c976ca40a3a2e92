//! Decompresses a file if it is gzip, which is recognised by its first bytes, whatever its name.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The longest line that is examined to recognise a format.
const LONGEST_FIRST_LINE: u64 = 64 * 1024;
/// Some programs begin a text with this mark, which has no meaning.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The first line, and a reader of the whole text including it.
pub(super) fn unpack<'a>(source: impl Read + 'a) -> io::Result<(String, Box<dyn Read + 'a>)> {
    let (magic, packed) = peek(source, |source, magic| source.take(2).read_to_end(magic).map(drop))?;
    let plain: Box<dyn Read + 'a> =
        if magic == GZIP { Box::new(MultiGzDecoder::new(packed)) } else { Box::new(packed) };
    let (first_line, text) = peek(BufReader::new(plain), |source, line| {
        source.take(LONGEST_FIRST_LINE).read_until(b'\n', line).map(drop)
    })?;
    let mark = if first_line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let shown = String::from_utf8_lossy(&first_line[mark..]).trim_end().to_owned();
    let mut text = text;
    io::copy(&mut text.by_ref().take(mark as u64), &mut io::sink())?;
    Ok((shown, Box::new(text)))
}

/// What `reads` takes from the beginning, and a reader of everything from the beginning on.
fn peek<R: Read>(
    mut source: R,
    reads: impl FnOnce(&mut R, &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<(Vec<u8>, impl Read)> {
    let mut beginning = Vec::new();
    reads(&mut source, &mut beginning)?;
    Ok((beginning.clone(), Cursor::new(beginning).chain(source)))
}

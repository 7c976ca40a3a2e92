//! Decompresses a file if it is gzip, which is recognized by its first bytes, whatever its name.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The longest line that is examined to recognize a format.
const LONGEST_FIRST_LINE: u64 = 64 * 1024;
/// Some programs begin a text with this mark, which has no meaning.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The text of a table.
pub struct TableText<'a> {
    /// Its first line, or the beginning of a very long one, without the line end.
    pub first_line: String,
    /// The whole text, the first line included.
    pub text: Box<dyn Read + 'a>,
}

/// Opens a table: decompresses it if it is gzip, and removes a byte order mark.
///
/// # Errors
/// If the beginning cannot be read.
pub fn open_table<'a>(source: impl Read + 'a) -> io::Result<TableText<'a>> {
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
    Ok(TableText { first_line: shown, text: Box::new(text) })
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn opened(bytes: &[u8]) -> (String, String) {
        let mut table = open_table(bytes).unwrap();
        let mut text = String::new();
        table.text.read_to_string(&mut text).unwrap();
        (table.first_line, text)
    }

    #[test]
    fn plain_and_packed_tables_are_the_same_with_and_without_a_mark() {
        let plain = "a,b\r\n1,2\r\n";
        let marked = format!("\u{feff}{plain}");
        for text in [plain, &marked] {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(text.as_bytes()).unwrap();
            for bytes in [text.as_bytes(), &packed.finish().unwrap()] {
                assert_eq!(opened(bytes), ("a,b".to_owned(), plain.to_owned()));
            }
        }
        assert_eq!(opened(b""), (String::new(), String::new()));
    }

    #[test]
    fn a_broken_archive_is_an_error() {
        assert!(open_table(&[0x1f, 0x8b, 8, 0][..]).is_err());
    }
}

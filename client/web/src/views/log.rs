//! The output of a rank: what is there, and where the browser asks for more.

use askama::Template;
use cohabit_client::types::{JobId, LogChunk};

/// The most characters of a line without an end that are shown at once; control characters are left out.
const BEFORE_TRUNCATION: usize = 262_144;

/// Where in the output of which rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPlace {
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) rank: u32,
}

/// The section of a page with the end of the output of a rank. The script goes on from there; without script
/// there is the page, loaded again.
#[derive(Template)]
#[template(path = "log_section.html")]
pub(crate) struct LogSection {
    pub(crate) place: LogPlace,
    pub(crate) ranks: u32,
    pub(crate) attempts: u32,
    /// What is there already, and how it goes on.
    pub(crate) piece: LogPiece,
}

/// A piece of the output.
#[derive(Template)]
#[template(path = "log_piece.html")]
pub(crate) struct LogPiece {
    pub(crate) place: LogPlace,
    pub(crate) text: String,
    pub(crate) dropped: u64,
    /// Where the next piece begins; none when all has been printed.
    pub(crate) next: Option<u64>,
    /// Why there is no output.
    pub(crate) problem: Option<String>,
}

impl LogPiece {
    pub(crate) fn new(place: LogPlace, chunk: &LogChunk) -> LogPiece {
        let bytes: Vec<u8> = chunk.records.iter().flat_map(|record| record.bytes.iter().copied()).collect();
        LogPiece {
            place,
            text: visible_text(&String::from_utf8_lossy(&bytes)),
            dropped: chunk.dropped,
            next: (!chunk.complete).then_some(chunk.next),
            problem: None,
        }
    }

    /// No output, and why.
    pub(crate) fn problem(place: LogPlace, why: String) -> LogPiece {
        LogPiece { place, text: String::new(), dropped: 0, next: None, problem: Some(why) }
    }
}

/// The text without what a terminal would obey: sequences of escape characters and control characters other
/// than line breaks and tabs. A progress bar that returns to the start of its line is shown as lines.
fn visible_text(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(BEFORE_TRUNCATION);
    let mut letters = text.chars().skip(skipped).peekable();
    let mut visible = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => visible.push(letter),
            '\r' if letters.peek() != Some(&'\n') => visible.push('\n'),
            '\x1b' => skip_escape(&mut letters),
            other if other.is_control() => {}
            other => visible.push(other),
        }
    }
    visible
}

/// Skips the rest of an escape sequence: of a control sequence up to its final letter, of a title up to its
/// end, of all others one letter.
fn skip_escape(letters: &mut std::iter::Peekable<impl Iterator<Item = char>>) {
    match letters.next() {
        Some('[') => while letters.next().is_some_and(|letter| !('@'..='~').contains(&letter)) {},
        Some(']') => {
            while letters.next_if(|letter| !matches!(letter, '\x07' | '\x1b' | '\n')).is_some() {}
            if letters.next_if_eq(&'\x1b').is_some() {
                letters.next();
            }
        }
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_shown_without_what_a_terminal_obeys() {
        for (text, visible) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07behind", "behind"),
            ("\x1b]0;title\x1b\\behind", "behind"),
            ("1%\r2%\r\n", "1%\n2%\n"),
            ("a\u{8}\u{0}b\u{9b}", "ab"),
            ("\x1b", ""),
            ("\x1b[", ""),
            ("<script>", "<script>"),
        ] {
            assert_eq!(visible_text(text), visible, "{text:?}");
        }
    }
}

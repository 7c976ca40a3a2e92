//! Text of other people, made visible: what a terminal obeys or does not show is written as its code.
//!
//! A name may contain characters that move the cursor, that reverse the text after them, or that nobody
//! sees. `\u{202e}` on the screen says that there is one, and two names that differ look different. In JSON
//! the same characters are escaped as JSON writes them, which changes no value.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Characters without a width or that change the direction of others: Unicode's property
/// `Default_Ignorable_Code_Point`, separators of lines and paragraphs, and the marks of annotations. Control
/// characters are not among them.
pub(crate) const INVISIBLE: [RangeInclusive<char>; 18] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{2029}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Escapes control and invisible characters, line breaks among them: the text stays in its cell or line.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter.is_control() || is_invisible(letter))
}

/// Escapes control and invisible characters other than line breaks, tabs and sequences that set a color.
pub(crate) fn printable_text(text: &str) -> Cow<'_, str> {
    let harms = |letter: char| match letter {
        '\n' | '\t' => false,
        other => other.is_control() || is_invisible(other),
    };
    if !text.contains('\x1b') {
        return escaped(text, harms);
    }
    let mut parts = text.split('\x1b');
    let mut printable = escaped(parts.next().unwrap_or_default(), harms).into_owned();
    for part in parts {
        printable.push_str(if starts_with_color(part) { "\x1b" } else { "\\u{1b}" });
        printable.push_str(&escaped(part, harms));
    }
    Cow::Owned(printable)
}

/// Escapes invisible characters in a JSON document, where they occur in strings only.
pub(crate) fn printable_json(document: &str) -> Cow<'_, str> {
    if !document.contains(is_invisible) {
        return Cow::Borrowed(document);
    }
    let mut printable = String::with_capacity(document.len());
    for letter in document.chars() {
        if is_invisible(letter) {
            letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(printable, "\\u{unit:04x}"));
        } else {
            printable.push(letter);
        }
    }
    Cow::Owned(printable)
}

fn is_invisible(letter: char) -> bool {
    !letter.is_ascii() && INVISIBLE.iter().any(|range| range.contains(&letter))
}

/// Whether a part after an escape character goes on as a sequence that sets a color.
fn starts_with_color(part: &str) -> bool {
    let code = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
    code.is_some_and(|(code, _)| code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
}

fn escaped(text: &str, harms: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&harms) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if harms(letter) {
            escaped.extend(letter.escape_default());
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_invisible() -> impl Iterator<Item = char> {
        INVISIBLE.into_iter().flatten()
    }

    #[test]
    fn invisible_characters_are_written_as_their_codes() {
        for letter in every_invisible() {
            let code = format!("a\\u{{{:x}}}b", letter as u32);
            let text = format!("a{letter}b");
            assert_eq!(printable_line(&text), code);
            assert_eq!(printable_text(&text), code);
        }
    }

    #[test]
    fn characters_that_hide_or_reverse_text_count_as_invisible() {
        let bidirectional = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        let marks = ['\u{200e}', '\u{200f}', '\u{61c}', '\u{2060}', '\u{feff}', '\u{ad}'];
        let hidden =
            ('\u{200b}'..='\u{200d}').chain('\u{e0000}'..='\u{e007f}').chain('\u{fe00}'..='\u{fe0f}');
        assert!(bidirectional.chain(marks).chain(hidden).all(is_invisible));
    }

    #[test]
    fn visible_text_stays_as_it_is() {
        for text in ["plain ä ━ 名前 שלום مرحبا 🚀", ""] {
            assert!(matches!(printable_line(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(printable_json(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn text_moves_no_cursor_and_sets_no_title() {
        assert_eq!(printable_text("plain\ttext ä ━\n"), "plain\ttext ä ━\n");
        assert_eq!(printable_text("\x1b[1;31mred\x1b[0m"), "\x1b[1;31mred\x1b[0m");
        let hostile = "job\x1b[2J\x1b]0;title\x07\r\u{9b}5A\x7f\0";
        let shown = r"job\u{1b}[2J\u{1b}]0;title\u{7}\r\u{9b}5A\u{7f}\u{0}";
        assert_eq!(printable_text(hostile), shown);
        assert_eq!(printable_text("\x1b"), r"\u{1b}");
    }

    #[test]
    fn a_line_forges_no_other_line_and_no_color() {
        assert_eq!(printable_line("a\nreason: b\t\x1b[31mc"), r"a\nreason: b\t\u{1b}[31mc");
    }

    #[test]
    fn a_json_document_keeps_its_values() {
        let value: String = every_invisible().collect();
        let document = serde_json::to_string(&value).unwrap();
        let printable = printable_json(&document);
        assert!(printable.is_ascii(), "{printable}");
        assert_eq!(serde_json::from_str::<String>(&printable).unwrap(), value);
    }
}

//! A line of a job's output as text for a screen that is not the job's: nothing in it drives the terminal.

use cohabit_console::printable_line;

/// The line as it would stand on a terminal: what a carriage return has overwritten, and colors, are left
/// out, tabs are spaces, and other control characters are written as their codes.
pub(crate) fn plain_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let shown = text.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    printable_line(&without_colors(shown).replace('\t', "    ")).into_owned()
}

/// The text without sequences that set a color; others stay, to be shown as codes.
fn without_colors(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        match code {
            Some((code, rest)) if code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') => {
                plain.push_str(rest);
            }
            Some(_) | None => {
                plain.push('\x1b');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::hostile_text::assert_printable;

    #[test]
    fn a_line_is_what_a_terminal_would_show_without_colors() {
        for (bytes, shown) in [
            (&b"plain"[..], "plain"),
            (b"10%\r50%\r100%\r", "100%"),
            (b"\x1b[1;31mred\x1b[0m end", "red end"),
            (b"a\tb", "a    b"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            (b"\x1b[2J\x1b]0;title\x07", r"\u{1b}[2J\u{1b}]0;title\u{7}"),
            (b"", ""),
        ] {
            assert_eq!(plain_line(bytes), shown);
        }
    }

    #[test]
    fn a_line_shows_codes_of_characters_that_are_not_visible() {
        // Carriage returns and tabs do here what they do on a terminal.
        assert_printable(|text| match text.contains(['\r', '\t']) {
            true => printable_line(text).into_owned(),
            false => plain_line(text.as_bytes()),
        });
    }
}

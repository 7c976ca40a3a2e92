//! Tables of text in a rectangle of the screen: the columns that fit, and how many do not.
//!
//! The tables of ratatui cut cells and columns without a word; these say what is not shown.

use std::iter;

use cohabit_console::printable_line;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as TextSpan};

/// A column. Widths are in cells of the terminal.
#[derive(Debug)]
pub(super) struct TextColumn {
    pub(super) heading: String,
    /// With less room than this, the column is not shown.
    pub(super) least: usize,
    /// What is longer is cut.
    pub(super) most: usize,
}

/// A cell.
#[derive(Debug)]
pub(super) struct TextCell {
    text: String,
    color: Color,
}

impl TextCell {
    pub(super) fn plain(text: impl AsRef<str>) -> TextCell {
        TextCell::colored(text, Color::Reset)
    }

    /// Control characters of the text are shown as their codes.
    pub(super) fn colored(text: impl AsRef<str>, color: Color) -> TextCell {
        TextCell { text: printable_line(text.as_ref()).into_owned(), color }
    }
}

/// The columns that are shown, with their widths.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ColumnFit {
    shown: Vec<(usize, usize)>,
    /// How many columns are to the left of those that are shown, and to the right.
    pub(super) before: usize,
    pub(super) after: usize,
}

impl ColumnFit {
    /// The first `pinned` columns, and behind them those from `skipped` on, as far as they fit into a width.
    pub(super) fn new(
        columns: &[TextColumn],
        rows: &[&[TextCell]],
        width: usize,
        (pinned, skipped): (usize, usize),
    ) -> ColumnFit {
        let skipped = skipped.min(columns.len().saturating_sub(pinned + 1));
        let mut fit = ColumnFit { shown: Vec::new(), before: skipped, after: 0 };
        let mut left = width;
        for index in (0..pinned.min(columns.len())).chain(pinned + skipped..columns.len()) {
            let gap = usize::from(!fit.shown.is_empty());
            let wanted = natural_width(&columns[index], index, rows);
            let room = left.saturating_sub(gap);
            if room < wanted.min(columns[index].least).max(1) {
                fit.after = columns.len() - index - if index < pinned { skipped } else { 0 };
                break;
            }
            fit.shown.push((index, wanted.min(room)));
            left = room - wanted.min(room);
        }
        fit
    }

    /// The line of headings.
    pub(super) fn heading(&self, columns: &[TextColumn]) -> Line<'static> {
        let cells = self.shown.iter().map(|(index, width)| padded(&columns[*index].heading, *width));
        Line::from(cells.collect::<Vec<_>>().join(" ")).style(Modifier::DIM)
    }

    /// The line of a row.
    pub(super) fn row(&self, cells: &[TextCell]) -> Line<'static> {
        let spans = self.shown.iter().enumerate().flat_map(|(place, (index, width))| {
            let gap = (place > 0).then(|| TextSpan::raw(" "));
            let cell = &cells[*index];
            let text = TextSpan::styled(padded(&cell.text, *width), Style::from(cell.color));
            gap.into_iter().chain(iter::once(text))
        });
        Line::from(spans.collect::<Vec<_>>())
    }
}

/// The width that shows the whole heading and every cell, unless it is more than the most.
fn natural_width(column: &TextColumn, index: usize, rows: &[&[TextCell]]) -> usize {
    let cells = rows.iter().map(|row| width_of(&row[index].text));
    cells.max().unwrap_or_default().min(column.most).max(width_of(&column.heading))
}

/// The width of a text in cells of the terminal.
pub(super) fn width_of(text: &str) -> usize {
    TextSpan::raw(text).width()
}

/// The text in exactly this width: with spaces behind it, or cut, with `…` at the end.
fn padded(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let spaces = width.saturating_sub(width_of(&text));
    text + &" ".repeat(spaces)
}

/// The text in at most this width; where it is cut, it ends with `…`.
pub(super) fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let (head, _) = split_at_width(text, width.saturating_sub(1));
    if width == 0 { String::new() } else { head.to_owned() + "…" }
}

/// The text in lines of at most this width.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while width_of(rest) > width {
        let (line, after) = split_at_width(rest, width);
        if line.is_empty() {
            break;
        }
        // Lines end between words, unless a word is long.
        let end = match line.rfind(' ') {
            Some(space) if !after.starts_with(' ') && space >= line.len() / 2 => space + 1,
            Some(_) | None => line.len(),
        };
        lines.push(line[..end].to_owned());
        rest = &rest[end..];
    }
    lines.push(rest.to_owned());
    lines
}

fn split_at_width(text: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    let end = text.char_indices().find(|(_, letter)| {
        used += width_of(letter.encode_utf8(&mut [0; 4]));
        used > width
    });
    text.split_at(end.map_or(text.len(), |(at, _)| at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<TextColumn> {
        let column = |heading: &str, least, most| TextColumn { heading: heading.to_owned(), least, most };
        vec![column("ID", 2, 4), column("NAME", 4, 10), column("USER", 4, 8), column("DETAIL", 6, usize::MAX)]
    }

    fn fit(width: usize, skipped: usize) -> (Vec<usize>, usize, usize) {
        let row = ["12", "a-long-name", "ada", "a rather long detail"].map(TextCell::plain);
        let fit = ColumnFit::new(&columns(), &[&row], width, (1, skipped));
        (fit.shown.iter().map(|(index, _)| *index).collect(), fit.before, fit.after)
    }

    #[test]
    fn columns_that_do_not_fit_are_counted_and_can_be_reached() {
        assert_eq!(fit(80, 0), (vec![0, 1, 2, 3], 0, 0));
        assert_eq!(fit(20, 0), (vec![0, 1, 2], 0, 1));
        assert_eq!(fit(12, 0), (vec![0, 1], 0, 2));
        assert_eq!(fit(12, 1), (vec![0, 2], 1, 1));
        assert_eq!(fit(12, 9), (vec![0, 3], 2, 0));
        assert_eq!(fit(1, 0), (vec![], 0, 4));
        assert_eq!(fit(0, 9), (vec![], 2, 2));
    }

    #[test]
    fn a_text_that_is_cut_ends_with_an_ellipsis() {
        for (text, width, shown) in [
            ("abcd", 4, "abcd"),
            ("abcde", 4, "abc…"),
            ("名前名前", 4, "名…"),
            ("名前", 4, "名前"),
            ("ab", 1, "…"),
            ("ab", 0, ""),
        ] {
            assert_eq!(cut(text, width), shown, "{text} in {width}");
            assert!(width_of(&padded(text, width)) == width, "{text} in {width}");
        }
    }

    #[test]
    fn wrapped_lines_lose_nothing() {
        for text in ["", "short", "a line that is longer than ten", "名前名前名前"] {
            for width in [2, 3, 10] {
                let lines = wrapped(text, width);
                assert!(lines.iter().all(|line| width_of(line) <= width), "{lines:?}");
                assert_eq!(lines.concat(), text);
            }
        }
        assert_eq!(wrapped("lines end between words", 10), ["lines end ", "between ", "words"]);
        assert_eq!(wrapped("ab", 0), ["ab"], "a screen without room is not looped over");
    }
}

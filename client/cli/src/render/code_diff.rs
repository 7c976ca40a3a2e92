//! How one file differs, as git prints it.

use std::time::Duration;

use cohabit_client::FileContent;
use cohabit_console::{Colour, printable_line};
use similar::{ChangeTag, TextDiff};

use crate::code_changes::FileChange;

/// Unchanged lines around changed ones.
const CONTEXT: usize = 3;

/// After this time the difference of a file may become longer than necessary.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A file with a zero byte among so many first ones is no text, as in git.
const INSPECTED: usize = 8 << 10;

/// What the difference is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffStyle {
    /// A program, which applies it: lines are as they are in the files.
    Patch,
    /// A screen: characters that it would obey or not show are written as their codes.
    Screen(Colour),
}

/// Lines that a change adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineCounts {
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

/// The content of a changed file on both sides; empty where it does not exist. The target of a link counts as
/// its content.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedContent {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

impl ChangedContent {
    /// Both as text, unless one is binary.
    fn texts(&self) -> Option<(&str, &str)> {
        Some((text_of(&self.before)?, text_of(&self.after)?))
    }

    /// The lines that differ; none if one side is binary.
    pub(crate) fn line_counts(&self) -> Option<LineCounts> {
        let (before, after) = self.texts()?;
        let (before, after) = (lines(before), lines(after));
        let difference = compare_lines(&before, &after);
        let count = |tag| difference.iter_all_changes().filter(|change| change.tag() == tag).count();
        Some(LineCounts { added: count(ChangeTag::Insert), removed: count(ChangeTag::Delete) })
    }
}

/// The difference of one file, with the headings of git.
pub(crate) fn file_diff(change: &FileChange, content: &ChangedContent, style: DiffStyle) -> String {
    let path = printable_line(&change.path);
    let mut text = DiffText { style, text: String::new() };
    text.heading(&format!("diff --git a/{path} b/{path}"));
    match (change.before.as_ref().map(mode), change.after.as_ref().map(mode)) {
        (None, Some(new)) => text.heading(&format!("new file mode {new}")),
        (Some(old), None) => text.heading(&format!("deleted file mode {old}")),
        (Some(old), Some(new)) if old != new => {
            text.heading(&format!("old mode {old}"));
            text.heading(&format!("new mode {new}"));
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    let side = |exists: bool, name: &str| match exists {
        true => format!("{name}/{path}"),
        false => "/dev/null".to_owned(),
    };
    let (old, new) = (side(change.before.is_some(), "a"), side(change.after.is_some(), "b"));
    if content.before == content.after {
        return text.text;
    }
    let Some((before, after)) = content.texts() else {
        text.heading(&format!("Binary files {old} and {new} differ"));
        return text.text;
    };
    text.heading(&format!("--- {old}"));
    text.heading(&format!("+++ {new}"));
    text.hunks(before, after);
    text.text
}

/// As git writes it.
const fn mode(content: &FileContent) -> &'static str {
    match content {
        FileContent::Link(_) => "120000",
        FileContent::Stored { is_executable: true, .. } => "100755",
        FileContent::Stored { is_executable: false, .. } => "100644",
    }
}

fn text_of(content: &[u8]) -> Option<&str> {
    let is_binary = content.iter().take(INSPECTED).any(|byte| *byte == 0);
    str::from_utf8(content).ok().filter(|_| !is_binary)
}

/// With their ends; only the last may lack it.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn compare_lines<'a>(before: &'a [&'a str], after: &'a [&'a str]) -> TextDiff<'a, 'a, 'a, str> {
    TextDiff::configure().timeout(TIMEOUT).diff_slices(before, after)
}

/// The text of a difference, while it is written.
struct DiffText {
    style: DiffStyle,
    text: String,
}

impl DiffText {
    fn heading(&mut self, line: &str) {
        self.line(line, "1");
    }

    fn hunks(&mut self, before: &str, after: &str) {
        let (before, after) = (lines(before), lines(after));
        let difference = compare_lines(&before, &after);
        for hunk in difference.unified_diff().context_radius(CONTEXT).iter_hunks() {
            self.line(&hunk.header().to_string(), "36");
            for change in hunk.iter_changes() {
                let (sign, color) = match change.tag() {
                    ChangeTag::Equal => (' ', ""),
                    ChangeTag::Delete => ('-', "31"),
                    ChangeTag::Insert => ('+', "32"),
                };
                let ended = change.value().strip_suffix('\n');
                let line = self.content(ended.unwrap_or(change.value()));
                self.line(&format!("{sign}{line}"), color);
                if ended.is_none() {
                    self.line("\\ No newline at end of file", "");
                }
            }
        }
    }

    /// A line of a file. On a screen tabs stay.
    fn content(&self, line: &str) -> String {
        match self.style {
            DiffStyle::Patch => line.to_owned(),
            DiffStyle::Screen(_) => line.split('\t').map(printable_line).collect::<Vec<_>>().join("\t"),
        }
    }

    fn line(&mut self, line: &str, color: &str) {
        let is_colored = self.style == DiffStyle::Screen(Colour::Shown) && !color.is_empty();
        match is_colored {
            true => self.text.push_str(&format!("\u{1b}[{color}m{line}\u{1b}[0m\n")),
            false => self.text.push_str(&format!("{line}\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::ContentHash;

    use super::*;
    use crate::render::hostile_text::assert_printable;

    fn stored(is_executable: bool) -> Option<FileContent> {
        Some(FileContent::Stored { hash: ContentHash([0; 32]), size: 0, is_executable })
    }

    fn link(target: &str) -> Option<FileContent> {
        Some(FileContent::Link(target.into()))
    }

    fn diff(before: Option<FileContent>, after: Option<FileContent>, content: (&[u8], &[u8])) -> String {
        let change = FileChange { path: "src/x.py".into(), before, after };
        let content = ChangedContent { before: content.0.into(), after: content.1.into() };
        file_diff(&change, &content, DiffStyle::Patch)
    }

    #[test]
    fn differences_are_those_of_git() {
        let long: String = (1..=9).map(|number| format!("line {number}\n")).collect();
        let edited = long.replace("line 5", "\tline five");
        let texts = [
            diff(stored(false), stored(false), (long.as_bytes(), edited.as_bytes())),
            diff(stored(false), stored(true), (b"same", b"same")),
            diff(None, stored(true), (b"", b"#!/bin/sh\necho\n")),
            diff(stored(false), None, (b"a\nb", b"")),
            diff(None, stored(false), (b"", b"")),
            diff(link("old"), link("new"), (b"old", b"new")),
            diff(stored(false), stored(false), (b"a\0b", b"a")),
            diff(stored(false), None, (b"\xff", b"")),
        ];
        insta::assert_snapshot!("code_diff", texts.concat());
    }

    #[test]
    fn colors_are_shown_on_screens_that_have_them() {
        let change = FileChange { path: "x".into(), before: stored(false), after: stored(false) };
        let content = ChangedContent { before: b"a\n".into(), after: b"b\n".into() };
        let shown = file_diff(&change, &content, DiffStyle::Screen(Colour::Shown));
        assert!(shown.contains("\u{1b}[31m-a\u{1b}[0m\n\u{1b}[32m+b\u{1b}[0m\n"), "{shown:?}");
        let plain = file_diff(&change, &content, DiffStyle::Screen(Colour::None));
        assert_eq!(plain, file_diff(&change, &content, DiffStyle::Patch));
    }

    #[test]
    fn a_screen_obeys_neither_names_nor_content() {
        assert_printable(|text| {
            let change = FileChange { path: text.into(), before: stored(false), after: None };
            file_diff(&change, &ChangedContent::default(), DiffStyle::Screen(Colour::None))
        });
        let change = FileChange { path: "x".into(), before: None, after: stored(false) };
        let content = ChangedContent { before: Vec::new(), after: b"\ta\x1b[31mb\r\n".into() };
        let shown = file_diff(&change, &content, DiffStyle::Screen(Colour::None));
        assert!(shown.ends_with("+\ta\\u{1b}[31mb\\r\n"), "{shown:?}");
        let patch = file_diff(&change, &content, DiffStyle::Patch);
        assert!(patch.ends_with("+\ta\u{1b}[31mb\r\n"), "{patch:?}");
    }

    #[test]
    fn lines_are_counted() {
        let counts = |before: &[u8], after: &[u8]| {
            ChangedContent { before: before.into(), after: after.into() }.line_counts()
        };
        assert_eq!(counts(b"a\nb\n", b"a\nc\nd\n"), Some(LineCounts { added: 2, removed: 1 }));
        assert_eq!(counts(b"", b"a"), Some(LineCounts { added: 1, removed: 0 }));
        assert_eq!(counts(b"\0", b"a"), None);
    }
}

//! The table of changed files, for `code --stat`.

use cohabit_console::Screen;
use cohabit_console::table::{self, cell};

use super::code_diff::LineCounts;

const HEADINGS: [&str; 3] = ["FILE", "ADDED", "REMOVED"];

/// Each file with its lines that differ; none if it is binary.
pub(crate) fn stat_table(files: &[(String, Option<LineCounts>)], screen: Screen) -> String {
    let mut table = table::table(&HEADINGS, screen);
    for (path, counts) in files {
        let (added, removed) = match counts {
            Some(LineCounts { added, removed }) => (format!("+{added}"), format!("-{removed}")),
            None => ("binary".to_owned(), "binary".to_owned()),
        };
        table.add_row([cell(path), cell(added), cell(removed)]);
    }
    table::text(&table)
}

#[cfg(test)]
mod tests {
    use cohabit_console::Colour;

    use super::*;
    use crate::render::hostile_text::assert_printable;

    const PIPE: Screen = Screen { width: None, colour: Colour::None };

    #[test]
    fn each_file_has_its_counts() {
        let counts = Some(LineCounts { added: 12, removed: 3 });
        let text = stat_table(&[("train.py".into(), counts), ("data.bin".into(), None)], PIPE);
        let rows: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(rows[1..], [["train.py", "+12", "-3"], ["data.bin", "binary", "binary"]]);
    }

    #[test]
    fn names_are_printable() {
        assert_printable(|text| stat_table(&[(text.to_owned(), None)], PIPE));
    }
}

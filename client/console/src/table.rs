//! Plain tables: upper-case headings, two spaces between columns, no lines.

use std::fmt::Display;

use comfy_table::{Cell, ContentArrangement, Table, presets};

use crate::output::{Colour, Screen};
use crate::printable::printable_line;

/// Creates an empty table with these headings.
pub fn table(headings: &[&str], screen: Screen) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings).force_no_tty();
    if let Some(width) = screen.width {
        table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
    }
    if screen.colour == Colour::Shown {
        table.enforce_styling();
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// A cell with a text that others may have chosen. It is escaped before the columns are laid out.
pub fn cell(text: impl Display) -> Cell {
    Cell::new(printable_line(&text.to_string()))
}

/// The text of a table, without trailing spaces.
pub fn text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

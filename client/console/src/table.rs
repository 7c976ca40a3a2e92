//! Plain tables: upper-case headings, two spaces between columns, no lines.

use comfy_table::{ContentArrangement, Table, presets};

use crate::output::{Colour, Screen};

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

/// The text of a table, without trailing spaces.
pub fn text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

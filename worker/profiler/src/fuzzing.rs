//! A property of the parser of co-location tables, which people may have edited, for `integration/fuzz`.

use crate::table::{read, write};

/// A table that can be read is written in a form that can be read and means the same.
pub fn co_location_table(text: &[u8]) {
    let Ok(rows) = read(text) else { return };
    let written = write(&rows).expect("rows can be written as CSV");
    let again = read(&written).expect("what was written can be read");
    assert_eq!(write(&again).expect("it was written before"), written);
}

//! What must hold of a co-location table that people may have edited, for `integration/fuzz`.

use super::table::{read, write};

/// A table that is understood is written in a form that is understood, and means the same.
pub(crate) fn table(text: &[u8]) {
    let Ok(rows) = read(text) else { return };
    let written = write(&rows).expect("rows have a form as CSV");
    let again = read(&written).expect("what was written can be read");
    assert_eq!(write(&again).expect("it was written before"), written);
}

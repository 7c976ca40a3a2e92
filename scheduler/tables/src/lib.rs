//! Tables in files: traces and measurements are opened, and their formats recognized, in one way.
//!
//! [`open_table`] decompresses a file if it is gzip and shows its first line; [`detect`] finds the format
//! whose columns this line has. What the rows mean is for the crates that read them.
#![warn(missing_docs)]

mod format;
mod unpack;

pub use format::{
    MissingColumns, TableFormat, UnknownFormatName, UnknownTableFormat, detect, format_by_name,
};
pub use unpack::{TableText, open_table};

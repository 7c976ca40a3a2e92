//! A rank's output on disk: framed records in segment files, each named by its start position.
//!
//! A position counts bytes of output, so it stays valid when old segments are dropped. One executor writes;
//! any number of readers follow, while the rank runs and long after. Readers never delay the writer.

mod frame;
mod limits;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

#[cfg(feature = "fuzzing")]
pub(crate) use frame::Header;
pub use limits::LogLimits;
pub use reader::LogDirectory;
pub use writer::LogWriter;

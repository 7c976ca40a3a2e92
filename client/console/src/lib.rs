//! What every command needs to talk to its user: errors with exit codes, output, tables, and `--output`.
//!
//! Commands print through [`output`] alone and fail with a [`CommandError`]. This crate reads no settings and
//! no arguments other than `--output`, and knows no command. Start at `error.rs` for exit codes and at
//! `output.rs` for what goes to stdout and stderr.

mod display;
mod document;
pub mod duration;
mod error;
mod invocation;
pub mod model_description;
mod natural_order;
mod number;
pub mod output;
mod printable;
#[cfg(feature = "records")]
pub mod records;
mod source_line;
pub mod table;
mod usage_message;

pub use self::display::{DisplayArguments, OutputFormat};
pub use self::document::{VersionedDocument, with_schema};
pub use self::error::{CommandError, CommandErrorKind, ErrorDocument};
pub use self::invocation::current_command_line;
pub use self::natural_order::natural_key;
pub use self::number::format_number;
pub use self::output::{Colour, Screen};
pub use self::printable::printable_line;
pub use self::source_line::line_of;
pub use self::usage_message::usage_message;

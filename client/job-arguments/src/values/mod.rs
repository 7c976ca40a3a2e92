//! Parsers of the values of flags.
//!
//! Each parser returns the value, or a sentence that says what is wrong and how to write the value. No parser
//! reads the clock, files or the environment.

mod array;
mod begin;
mod dependency;
mod export;
mod gpus;
mod nodes;
mod notify;
mod range;
mod stop_signal;
mod variable;

pub use self::array::parse_array;
pub use self::begin::{BeginTime, parse_begin};
pub use self::dependency::{DependencyArgument, parse_dependency};
pub use self::export::{ExportArgument, ExportBase, parse_export};
pub use self::gpus::{divide_among_nodes, parse_gpus};
pub use self::nodes::{NodeCount, parse_nodes};
pub use self::notify::{NotifyArgument, parse_notify};
pub use self::range::{AmountRange, parse_cores, parse_memory, parse_memory_amount};
pub use self::stop_signal::parse_stop_signal;
pub use self::variable::{EnvArgument, parse_variable};
pub(crate) use cohabit_console::duration::parse_duration;

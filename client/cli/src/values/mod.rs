//! Parsers of values in flags and files.
//!
//! Each parser returns the value, or a sentence that says what is wrong and how to write the value. No parser
//! reads the clock, files or the environment.

mod array;
mod begin;
mod dependency;
mod expiry;
mod export;
mod gpus;
mod nodes;
mod notify;
mod range;
mod report;
mod stop_signal;
mod variable;

pub(crate) use self::array::parse_array;
pub(crate) use self::begin::{BeginTime, parse_begin};
pub(crate) use self::dependency::{DependencyArgument, parse_dependency};
pub(crate) use self::expiry::parse_expiry;
pub(crate) use self::export::{ExportArgument, ExportBase, parse_export};
pub(crate) use self::gpus::{divide_among_nodes, parse_gpus};
pub(crate) use self::nodes::{NodeCount, parse_nodes};
pub(crate) use self::notify::{NotifyArgument, parse_notify};
pub(crate) use self::range::{AmountRange, parse_cores, parse_memory, parse_memory_amount};
pub(crate) use self::report::{ReportTime, parse_grouping, parse_report_time};
pub(crate) use self::stop_signal::parse_stop_signal;
pub(crate) use self::variable::{EnvArgument, parse_variable};
pub(crate) use cohabit_console::duration::{parse_duration, total_seconds};

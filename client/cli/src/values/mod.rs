//! Parsers of values in flags and files.
//!
//! Each parser returns the value, or a sentence that says what is wrong and how to write the value. No parser
//! reads the clock, files or the environment.

mod array;
mod begin;
mod dependency;
mod gpus;
mod nodes;
mod stop_signal;
mod variable;

pub(crate) use self::array::array;
pub(crate) use self::begin::{BeginTime, begin};
pub(crate) use self::dependency::{DependencyArgument, dependency};
pub(crate) use self::gpus::{gpus, on_each_node};
pub(crate) use self::nodes::{NodeCount, nodes};
pub(crate) use self::stop_signal::stop_signal;
pub(crate) use self::variable::{EnvArgument, variable};
pub(crate) use cohabit_console::duration::{in_seconds, span};

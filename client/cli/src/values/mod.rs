//! What people write after flags and in files, read into the words of the protocol.
//!
//! Every reader takes the text and gives the value or a sentence for the person who wrote it: what is wrong
//! and how to write it. None of them looks at a clock, at files or at the environment.

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

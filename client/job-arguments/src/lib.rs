//! The flags that describe a job, and the job that they describe: of the command line, of scripts, and of
//! Python's keywords, which are the same flags.
//!
//! [`JobArguments`] are the flags, and [`specify`] makes the job. The directory, environment and time of the
//! submission come in as a [`SubmitContext`]. Nothing here talks to a head.

mod arguments;
mod array_file;
mod spec;
mod values;

pub use self::arguments::{
    COMMON, JobArguments, LaunchArgument, ORDER, QosArgument, SnapshotArgument, StallArgument,
};
pub use self::spec::{SubmitContext, specify};
pub use self::values::{
    AmountRange, BeginTime, DependencyArgument, EnvArgument, ExportArgument, ExportBase, NodeCount,
    NotifyArgument, divide_among_nodes, parse_array, parse_begin, parse_cores, parse_dependency,
    parse_export, parse_gpus, parse_memory, parse_memory_amount, parse_nodes, parse_notify,
    parse_stop_signal, parse_variable,
};

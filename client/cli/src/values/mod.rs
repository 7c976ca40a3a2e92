//! Parsers of values in flags and files, besides those of jobs.
//!
//! Each parser returns the value, or a sentence that says what is wrong and how to write the value. No parser
//! reads the clock, files or the environment.

mod expiry;
mod report;

pub(crate) use self::expiry::parse_expiry;
pub(crate) use self::report::{ReportTime, parse_grouping, parse_report_time};
pub(crate) use cohabit_console::duration::{parse_duration, total_seconds};
pub(crate) use cohabit_job_arguments::{BeginTime, DependencyArgument, parse_array, parse_begin};

//! Properties of the parsers of files and flags, for `integration/fuzz`.
//!
//! Each function takes arbitrary bytes and panics if a property does not hold.

use std::fmt::{Debug, Display};
use std::path::Path;
use std::str::FromStr;

use clap::{Args as _, Command};
use cohabit_client::types::{AttemptId, Bandwidth, Bytes, JobId, JobRef, JobState, RankId, Slowdown};
use cohabit_console::CommandError;
use cohabit_console::model_description::parse_model_description;
use cohabit_lab::profile::parse_workloads;

use crate::arguments::JobArguments;
use crate::script::Script;
use crate::{config, values};

/// The file that an error must name.
const FILE: &str = "there.toml";

/// A configuration file.
pub fn config(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let lines = text.matches('\n').count() + 1;
    match config::parse_settings(text) {
        Ok(written) => assert!(written.values().all(|(line, _)| (1..=lines).contains(line))),
        Err((line, why)) => assert!((1..=lines).contains(&line) && !why.is_empty()),
    }
}

/// The description of a model or a file of workloads. The first byte chooses which.
pub fn descriptions(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    if choice % 2 == 0 {
        check_places(text, parse_model_description(Path::new(FILE), text));
    } else if !text.contains("descr") && !text.contains("workdir") {
        // These keys name files, which a fuzz target must not open.
        check_places(text, parse_workloads(Path::new(FILE), text));
    }
}

/// The directives of a script are flags of a job, or the error names the line of the first bad one.
pub fn scripts(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let script = Script::of(Path::new(FILE), text);
    let late = script.late_directives();
    assert!(late.is_sorted() && late.iter().all(|line| *line >= 1 && *line <= text.lines().count()));
    check_places(text, script.directives(false));
}

/// An error names the file and a line that exists.
fn check_places<T>(text: &str, understood: Result<T, CommandError>) {
    let Err(failure) = understood else { return };
    let place = failure.message.strip_prefix(FILE).and_then(|rest| rest.strip_prefix(':'));
    let line = place.and_then(|rest| rest.split_once(':')).and_then(|(line, _)| line.parse::<usize>().ok());
    let lines = text.matches('\n').count() + 1;
    assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{}", failure.message);
}

/// Values of flags. The first byte chooses the type.
pub fn values(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    match choice % 17 {
        0 => check_message(values::parse_array(text)),
        1 => check_message(values::parse_begin(text)),
        2 => check_message(cohabit_job_arguments::parse_dependency(text)),
        3 => check_message(cohabit_job_arguments::parse_gpus(text)),
        4 => check_message(cohabit_job_arguments::parse_nodes(text)),
        5 => check_message(values::parse_duration(text)),
        6 => check_message(cohabit_job_arguments::parse_stop_signal(text)),
        7 => check_message(cohabit_job_arguments::parse_variable(text)),
        8 => check_round_trip::<JobId>(text),
        9 => check_round_trip::<AttemptId>(text),
        10 => check_round_trip::<RankId>(text),
        11 => check_round_trip::<JobRef>(text),
        12 => check_message(text.parse::<Bytes>()),
        13 => check_message(text.parse::<Bandwidth>()),
        14 => check_message(text.parse::<Slowdown>()),
        15 => check_message(text.parse::<JobState>()),
        _ => flags(text),
    }
}

/// An error has a message.
fn check_message<T, E: Display>(read: Result<T, E>) {
    if let Err(error) = read {
        assert!(!error.to_string().is_empty());
    }
}

/// A value that is printed parses to the same value.
fn check_round_trip<T: FromStr + Display + PartialEq + Debug>(text: &str)
where
    T::Err: Debug,
{
    let Ok(value) = text.parse::<T>() else { return };
    assert_eq!(value.to_string().parse::<T>().expect("a printed value parses"), value);
}

/// Flags of a job, one word on each line.
fn flags(text: &str) {
    let reader = JobArguments::augment_args(Command::new("job").no_binary_name(true).disable_help_flag(true));
    if let Err(error) = reader.try_get_matches_from(text.lines()) {
        assert!(!error.to_string().is_empty());
    }
}

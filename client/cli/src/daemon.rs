//! What the daemons have in common: the log, the signals that end them, and the one line that says they are
//! ready.

use std::io;
use std::process::ExitCode;
use std::str::FromStr;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::arguments::LoggingArguments;
use crate::config::{Key, Settings, Written};
use crate::failure::{Failure, Trouble};

/// tarpc opens a span for each call, which costs a third of the throughput.
const QUIET_LIBRARIES: &str = "tarpc=warn";
const USUAL_LEVEL: &str = "info";

/// The flags of logging, as settings.
pub(crate) fn logging_flags(arguments: &LoggingArguments) -> Written {
    let flags = [(Key::LogLevel, &arguments.log_level), (Key::LogFormat, &arguments.log_format)];
    flags.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))).collect()
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogFormat {
    Text,
    Json,
}

impl FromStr for LogFormat {
    type Err = String;
    fn from_str(text: &str) -> Result<LogFormat, String> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            other => Err(format!("'{other}' is no format of logs: use text or json")),
        }
    }
}

/// Sends what the libraries log to stderr.
pub(crate) fn start_logging(settings: &Settings) -> Result<(), Failure> {
    let filter = match settings.checked(Key::LogLevel, filter)? {
        Some(filter) => filter,
        None => filter(USUAL_LEVEL).map_err(|error| Failure::new(Trouble::Internal, error))?,
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match settings.checked(Key::LogFormat, LogFormat::from_str)?.unwrap_or(LogFormat::Text) {
        LogFormat::Json => lines.json().init(),
        LogFormat::Text => {
            let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
            lines.with_ansi(colour).init();
        }
    }
    Ok(())
}

/// A bare level keeps chatty libraries quiet; a whole filter means what it says.
fn filter(text: &str) -> Result<EnvFilter, String> {
    let is_level = !text.contains(['=', ',']);
    let whole = if is_level { format!("{text},{QUIET_LIBRARIES}") } else { text.to_owned() };
    EnvFilter::try_new(whole)
        .map_err(|error| format!("'{text}' is no log filter ({error}): use info, debug or warn"))
}

/// Drives a daemon to its end, on all cores.
pub(crate) fn run(daemon: impl Future<Output = Result<(), Failure>>) -> Result<ExitCode, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(|error| {
        Failure::new(Trouble::InputOutput, format!("the system gives no threads: {error}"))
    })?;
    runtime.block_on(daemon).map(|()| ExitCode::SUCCESS)
}

/// SIGTERM and SIGINT, watched for from the moment this exists.
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    pub(crate) fn watch() -> Result<EndSignals, Failure> {
        let watch = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(Trouble::InputOutput, format!("signals cannot be watched for: {error}"))
            })
        };
        Ok(EndSignals {
            terminate: watch(SignalKind::terminate())?,
            interrupt: watch(SignalKind::interrupt())?,
        })
    }

    /// Until one of them comes.
    pub(crate) async fn come(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_keeps_libraries_quiet_and_a_filter_is_taken_as_it_is() {
        assert_eq!(filter("info").unwrap().to_string(), "tarpc=warn,info");
        assert_eq!(filter("cohabit=debug").unwrap().to_string(), "cohabit=debug");
        assert!(filter("loud=very").unwrap_err().contains("no log filter"));
    }

    #[test]
    fn logs_have_two_formats() {
        assert_eq!("json".parse(), Ok(LogFormat::Json));
        assert!("xml".parse::<LogFormat>().unwrap_err().contains("text or json"));
    }
}

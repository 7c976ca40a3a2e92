//! What the daemons have in common: logging, shutdown signals and the runtime.

use std::io;
use std::process::ExitCode;
use std::str::FromStr;

#[cfg(any(feature = "head", feature = "worker"))]
use cohabit_console::output;
use cohabit_console::{CommandError, CommandErrorKind, printable_line};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::debug_fn;

use crate::arguments::LoggingArguments;
use crate::config::{RawSettings, SettingKey, Settings};

/// tarpc opens a span for each call, which costs a third of the throughput unless it is filtered out.
const QUIET_LIBRARIES: &str = "tarpc=warn";
const DEFAULT_LOG_LEVEL: &str = "info";

/// The logging flags as settings.
pub(crate) fn logging_flags(arguments: &LoggingArguments) -> RawSettings {
    let flags =
        [(SettingKey::LogLevel, &arguments.log_level), (SettingKey::LogFormat, &arguments.log_format)];
    flags.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))).collect()
}

/// The format of log lines.
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
            other => Err(format!("'{other}' is not a log format: use text or json")),
        }
    }
}

/// Writes log lines to stderr from now on.
pub(crate) fn start_logging(settings: &Settings) -> Result<(), CommandError> {
    let filter = match settings.checked(SettingKey::LogLevel, filter)? {
        Some(filter) => filter,
        None => {
            filter(DEFAULT_LOG_LEVEL).map_err(|error| CommandError::new(CommandErrorKind::Internal, error))?
        }
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // Values may come from other machines: none drives a terminal or forges a line.
    let printable = debug_fn(|writer, field, value| {
        let value = format!("{value:?}");
        match (field.name(), printable_line(&value)) {
            ("message", text) => write!(writer, "{text}"),
            (name, text) => write!(writer, "{name}={text}"),
        }
    });
    match settings.checked(SettingKey::LogFormat, LogFormat::from_str)?.unwrap_or(LogFormat::Text) {
        LogFormat::Json => lines.json().init(),
        LogFormat::Text => {
            let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
            lines.with_ansi(colour).fmt_fields(printable.delimited(" ")).init();
        }
    }
    Ok(())
}

/// Parses a log filter. A bare level also limits verbose libraries; a full filter is taken as it is.
fn filter(text: &str) -> Result<EnvFilter, String> {
    let is_level = !text.contains(['=', ',']);
    let whole = if is_level { format!("{text},{QUIET_LIBRARIES}") } else { text.to_owned() };
    EnvFilter::try_new(whole)
        .map_err(|error| format!("'{text}' is not a log filter ({error}): use warn, info or debug"))
}

/// Runs a daemon until it ends, on all cores.
pub(crate) fn run(daemon: impl Future<Output = Result<(), CommandError>>) -> Result<ExitCode, CommandError> {
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot start threads: {error}"))
    })?;
    runtime.block_on(daemon).map(|()| ExitCode::SUCCESS)
}

/// Runs file operations on a blocking thread, so that they do not hold up the event loop.
#[cfg(all(feature = "head", feature = "worker"))]
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
) -> Result<T, CommandError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(CommandError::new(CommandErrorKind::Internal, format!("a file operation failed: {error}")))
    })
}

/// Prints the line that says that the daemon works, and gives back memory from now on.
#[cfg(any(feature = "head", feature = "worker"))]
pub(crate) async fn print_ready(line: &str) -> Result<(), CommandError> {
    output::print_text(line)?;
    tokio::spawn(cohabit_actor::keep_small());
    Ok(())
}

/// SIGTERM and SIGINT, caught from the creation of this value on.
pub(crate) struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
    pub(crate) fn watch() -> Result<ShutdownSignals, CommandError> {
        let watch = |kind| {
            signal(kind).map_err(|error| {
                CommandError::new(CommandErrorKind::InputOutput, format!("cannot handle signals: {error}"))
            })
        };
        Ok(ShutdownSignals {
            terminate: watch(SignalKind::terminate())?,
            interrupt: watch(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them.
    pub(crate) async fn wait(&mut self) {
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
    fn a_bare_level_limits_libraries_and_a_filter_is_taken_as_it_is() {
        assert_eq!(filter("info").unwrap().to_string(), "tarpc=warn,info");
        assert_eq!(filter("cohabit=debug").unwrap().to_string(), "cohabit=debug");
        assert!(filter("loud=very").unwrap_err().contains("not a log filter"));
    }

    #[test]
    fn logs_have_two_formats() {
        assert_eq!("json".parse(), Ok(LogFormat::Json));
        assert!("xml".parse::<LogFormat>().unwrap_err().contains("text or json"));
    }
}

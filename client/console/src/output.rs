//! Output: data on stdout, messages on stderr.
//!
//! No other module writes to either. Colours are used on terminals only and honour `NO_COLOR`. If the reader
//! of stdout closes it, the command ends with [`CommandErrorKind::ClosedPipe`] and prints nothing about it.

use std::io::{self, ErrorKind, IsTerminal as _, Write};

use cohabit_types::LogStream;
use comfy_table::Table;
use serde::Serialize;

use crate::display::OutputFormat;
use crate::error::{CommandError, CommandErrorKind};
use crate::printable::{printable_json, printable_text};

/// The properties of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Width in columns; none if lines may have any length.
    pub width: Option<u16>,
    /// Whether colours are shown.
    pub colour: Colour,
}

/// Whether colours are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Shown,
    None,
}

impl Colour {
    /// Whether this stream of the program shows colours: a terminal does, unless `NO_COLOR` is set.
    pub fn of(stream: LogStream) -> Colour {
        let choice = match stream {
            LogStream::Stdout => anstream::AutoStream::choice(&io::stdout()),
            LogStream::Stderr => anstream::AutoStream::choice(&io::stderr()),
        };
        match choice {
            anstream::ColorChoice::Never => Colour::None,
            anstream::ColorChoice::Auto
            | anstream::ColorChoice::AlwaysAnsi
            | anstream::ColorChoice::Always => Colour::Shown,
        }
    }
}

impl Screen {
    /// The screen that stdout is connected to.
    pub fn of_stdout() -> Screen {
        // A serial console says 0.
        let width = Table::new().width().filter(|width| *width > 0);
        Screen { width, colour: Colour::of(LogStream::Stdout) }
    }
}

/// Prints text on stdout. Control and invisible characters, which names chosen by other users may contain,
/// are printed as their codes.
pub fn print_text(text: &str) -> Result<(), CommandError> {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    print_bytes(LogStream::Stdout, format!("{}{newline}", printable_text(text)).as_bytes())
}

/// Prints a document as indented JSON.
pub fn print_document(document: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(document).map_err(serialization_error)?;
    print_bytes(LogStream::Stdout, format!("{}\n", printable_json(&text)).as_bytes())
}

/// Prints a document as one line of JSON.
pub fn print_line(document: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string(document).map_err(serialization_error)?;
    print_bytes(LogStream::Stdout, format!("{}\n", printable_json(&text)).as_bytes())
}

fn serialization_error(error: serde_json::Error) -> CommandError {
    CommandError::new(CommandErrorKind::Internal, format!("cannot serialise the document: {error}"))
}

/// Prints output of a job unchanged.
pub fn print_bytes(stream: LogStream, bytes: &[u8]) -> Result<(), CommandError> {
    let written = match stream {
        LogStream::Stdout => write_all(&mut io::stdout().lock(), bytes),
        LogStream::Stderr => write_all(&mut io::stderr().lock(), bytes),
    };
    written.map_err(|error| {
        if error.kind() == ErrorKind::BrokenPipe {
            return CommandError::new(CommandErrorKind::ClosedPipe, "the reader closed the output");
        }
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot write the output: {error}"))
    })
}

fn write_all(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// Prints a message on stderr; if stderr is closed, the message is lost.
pub fn print_message(text: &str) {
    write_message(&printable_text(text));
}

/// Shows on a terminal how far something is, in a line that the next one replaces.
pub fn show_progress(text: &str) {
    write_progress(&printable_text(text));
}

/// Removes that line.
pub fn clear_progress() {
    write_progress("");
}

fn write_progress(printable: &str) {
    if io::stderr().is_terminal() {
        let mut stderr = io::stderr().lock();
        // A terminal that is gone shows nothing.
        let _ = write!(stderr, "\r\x1b[K{printable}").and_then(|()| stderr.flush());
    }
}

/// If stderr is closed, the message is lost.
fn write_message(printable: &str) {
    let _ = writeln!(anstream::stderr(), "{printable}");
}

/// Prints an error on stderr in the given format.
pub fn print_error(error: &CommandError, format: OutputFormat) {
    match format {
        _ if error.kind == CommandErrorKind::ClosedPipe => {}
        OutputFormat::Json => {
            let document = serde_json::to_string(&error.document()).unwrap_or_default();
            write_message(&printable_json(&document));
        }
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet => {
            print_message(&format!("error: {}", error.message))
        }
    }
}

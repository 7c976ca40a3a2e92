//! Output: data on stdout, messages on stderr.
//!
//! No other module writes to either. Colours are used on terminals only and honour `NO_COLOR`. If the reader
//! of stdout closes it, the command ends with [`CommandErrorKind::ClosedPipe`] and prints nothing about it.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use cohabit_types::LogStream;
use comfy_table::Table;
use serde::Serialize;

use crate::display::OutputFormat;
use crate::error::{CommandError, CommandErrorKind};

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

impl Screen {
    /// The screen that stdout is connected to.
    pub fn of_stdout() -> Screen {
        let colour = match anstream::AutoStream::choice(&io::stdout()) {
            anstream::ColorChoice::Never => Colour::None,
            anstream::ColorChoice::Auto
            | anstream::ColorChoice::AlwaysAnsi
            | anstream::ColorChoice::Always => Colour::Shown,
        };
        Screen { width: Table::new().width(), colour }
    }
}

/// Prints text on stdout, without control sequences that names chosen by other users may contain.
pub fn print_text(text: &str) -> Result<(), CommandError> {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    print_bytes(LogStream::Stdout, format!("{}{newline}", sanitized(text)).as_bytes())
}

/// Prints a document as indented JSON.
pub fn print_document(document: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(document).map_err(serialization_error)?;
    print_bytes(LogStream::Stdout, format!("{text}\n").as_bytes())
}

/// Prints a document as one line of JSON.
pub fn print_line(document: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string(document).map_err(serialization_error)?;
    print_bytes(LogStream::Stdout, format!("{text}\n").as_bytes())
}

/// Removes control characters and escape sequences other than colours.
fn sanitized(text: &str) -> Cow<'_, str> {
    let harms = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    if !text.contains(harms) {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split('\x1b');
    let mut sanitized = parts.next().unwrap_or_default().replace(harms, "");
    for part in parts {
        let colour = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        if colour.is_some_and(|(code, _)| code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';')) {
            sanitized.push('\x1b');
        }
        sanitized.push_str(&part.replace(harms, ""));
    }
    Cow::Owned(sanitized)
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
    let _ = writeln!(anstream::stderr(), "{}", sanitized(text));
}

/// Prints an error on stderr in the given format.
pub fn print_error(error: &CommandError, format: OutputFormat) {
    match format {
        _ if error.kind == CommandErrorKind::ClosedPipe => {}
        OutputFormat::Json => print_message(&serde_json::to_string(&error.document()).unwrap_or_default()),
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet => {
            print_message(&format!("error: {}", error.message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_moves_no_cursor_and_sets_no_title() {
        assert_eq!(sanitized("plain\ttext ä ━\n"), "plain\ttext ä ━\n");
        assert_eq!(sanitized("\x1b[1;31mred\x1b[0m"), "\x1b[1;31mred\x1b[0m");
        assert_eq!(sanitized("job\x1b[2J\x1b]0;title\x07\r\u{9b}5A\x7f\0"), "job[2J]0;title5A");
        assert_eq!(sanitized("\x1b"), "");
    }
}

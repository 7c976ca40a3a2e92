//! Everything that the program prints: data on stdout, messages on stderr.
//!
//! The only module that writes to either. Colours go to terminals alone and honour `NO_COLOR`; whoever reads
//! us may go away at any time, which ends the program quietly.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use cohabit_types::LogStream;
use comfy_table::Table;
use serde::Serialize;

use crate::display::OutputFormat;
use crate::error::{CommandError, CommandErrorKind};

/// What the screen can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Its width; none where lines may be as long as they like.
    pub width: Option<u16>,
    /// Whether it shows colours.
    pub colour: Colour,
}

/// Whether there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    Shown,
    None,
}

impl Screen {
    /// What stdout is connected to.
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

/// Prints what people read; names and words of other users in it disturb no terminal.
pub fn print_text(text: &str) -> Result<(), CommandError> {
    let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    print_bytes(LogStream::Stdout, format!("{}{newline}", sanitized(text)).as_bytes())
}

/// Prints a document.
pub fn print_document(document: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string_pretty(document).map_err(serialization_error)?;
    print_bytes(LogStream::Stdout, format!("{text}\n").as_bytes())
}

/// Prints a document as one line.
pub fn print_line(document: &impl Serialize) -> Result<(), CommandError> {
    let text = serde_json::to_string(document).map_err(serialization_error)?;
    print_bytes(LogStream::Stdout, format!("{text}\n").as_bytes())
}

/// The text without what would do more to a terminal than show letters and colours.
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
    CommandError::new(CommandErrorKind::Internal, format!("a document cannot be written: {error}"))
}

/// Prints what a job printed, as it is.
pub fn print_bytes(stream: LogStream, bytes: &[u8]) -> Result<(), CommandError> {
    let written = match stream {
        LogStream::Stdout => written(&mut io::stdout().lock(), bytes),
        LogStream::Stderr => written(&mut io::stderr().lock(), bytes),
    };
    written.map_err(|error| {
        if error.kind() == ErrorKind::BrokenPipe {
            return CommandError::new(CommandErrorKind::ClosedPipe, "nobody reads the output any more");
        }
        CommandError::new(CommandErrorKind::InputOutput, format!("the output cannot be written: {error}"))
    })
}

fn written(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// Tells something on stderr; if nobody listens, it is lost.
pub fn print_message(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", sanitized(text));
}

/// Tells of a failure, in the form that was asked for.
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
    fn what_is_shown_moves_no_cursor_and_sets_no_title() {
        assert_eq!(sanitized("plain\ttext ä ━\n"), "plain\ttext ä ━\n");
        assert_eq!(sanitized("\x1b[1;31mred\x1b[0m"), "\x1b[1;31mred\x1b[0m");
        assert_eq!(sanitized("job\x1b[2J\x1b]0;title\x07\r\u{9b}5A\x7f\0"), "job[2J]0;title5A");
        assert_eq!(sanitized("\x1b"), "");
    }
}

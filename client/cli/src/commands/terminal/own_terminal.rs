//! The terminal of this process: whether there is one, its size, and its raw mode, in which every key comes
//! at once and none is acted on here.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, IsTerminal as _, Read as _, stdin, stdout};
use std::thread;

use cohabit_client::types::TerminalSize;
use cohabit_console::{CommandError, CommandErrorKind};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use ratatui::crossterm::terminal;
use tokio::sync::mpsc;

/// Variables that describe a terminal, and their values where they are not set here.
const VARIABLES: [(&str, Option<&str>); 2] = [("TERM", Some("xterm-256color")), ("COLORTERM", None)];
/// How much is read at once.
const PIECE: usize = 16 << 10;
/// Pieces that are read ahead.
const READ_AHEAD: usize = 4;

/// Refuses to go on without a terminal for both input and output.
pub(in crate::commands) fn check_terminal(command: &str, instead: &str) -> Result<(), CommandError> {
    if stdin().is_terminal() && stdout().is_terminal() {
        return Ok(());
    }
    Err(CommandError::new(
        CommandErrorKind::Usage,
        format!(
            "{command} needs a terminal as its standard input and output. Without one, as in a script: {instead}"
        ),
    ))
}

/// The size of this terminal, or what is usual.
pub(in crate::commands) fn own_size() -> TerminalSize {
    match terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => TerminalSize { rows, columns },
        Ok(_) | Err(_) => TerminalSize::default(),
    }
}

/// What a job has to know of this terminal.
pub(in crate::commands) fn terminal_variables() -> BTreeMap<String, String> {
    let own = |(name, default): (&str, Option<&str>)| {
        let value = env::var(name).ok().or_else(|| default.map(str::to_owned));
        value.map(|value| (name.to_owned(), value))
    };
    VARIABLES.into_iter().filter_map(own).collect()
}

/// The raw mode of this terminal. Its drop ends it, also while a panic unwinds.
pub(super) struct RawMode(Termios);

impl RawMode {
    pub(super) fn enter() -> Result<RawMode, CommandError> {
        let refused = |error: nix::errno::Errno| {
            CommandError::new(
                CommandErrorKind::InputOutput,
                format!("the terminal cannot be set up: {error}"),
            )
        };
        let before = tcgetattr(stdin()).map_err(refused)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(stdin(), SetArg::TCSADRAIN, &raw).map_err(refused)?;
        Ok(RawMode(before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Nobody sees a terminal that is gone.
        let _ = tcsetattr(stdin(), SetArg::TCSADRAIN, &self.0);
    }
}

/// Reads keys in a thread of its own, which lasts until the end of this process.
pub(super) fn read_terminal() -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel(READ_AHEAD);
    thread::spawn(move || {
        let mut input = stdin().lock();
        let mut piece = vec![0; PIECE];
        loop {
            match input.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The terminal is gone.
                Ok(0) | Err(_) => return,
                Ok(length) if send.blocking_send(piece[..length].to_vec()).is_err() => return,
                Ok(_) => {}
            }
        }
    });
    receive
}

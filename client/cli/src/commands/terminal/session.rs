//! A session: from the moment in which the person's terminal belongs to the job until it is given back.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_client::types::{ExecOutput, LogChunk, LogPosition, LogStream, Outcome};
use cohabit_client::{Client, LogOptions};
use cohabit_console::{CommandError, CommandErrorKind, output};
use futures::TryStreamExt as _;
use tokio::signal::unix::SignalKind;

use super::end_signals::{EndSignals, handle};
use super::escape::{EscapeAction, EscapeParser};
use super::key_queue::KeyQueue;
use super::own_terminal::{RawMode, read_terminal};
use super::owner::{TerminalOwner, read_present_exec};
use super::screen_modes::ScreenModes;
use super::typing::{begin_typing, send_keys};
use crate::commands::session_notices::tell_notices;
use crate::log_printer::LogPrinter;

/// How a session ends without an error.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::commands) enum TerminalEnd {
    /// All that was printed is shown. How a further process ended; a job tells by itself.
    Ended(Option<Outcome>),
    /// The person has detached, or their terminal is gone.
    Detached,
}

/// Connects this terminal with that of the job, whose output is shown from there on.
///
/// # Errors
/// When the job has no terminal, or is another user's; when the head is away for long; when this process is
/// told to end. The job goes on.
pub(in crate::commands) async fn connect_terminal(
    client: &Client,
    owner: TerminalOwner,
    from: LogPosition,
) -> Result<TerminalEnd, CommandError> {
    let (keys, modes) = (KeyQueue::default(), Arc::new(Mutex::new(ScreenModes::default())));
    let mut ends = EndSignals::new()?;
    let mut resizes = handle(SignalKind::window_change())?;
    let sent = begin_typing(client, owner).await?;
    output::print_message(&format!("connected to {owner}: {}", owner.escape_help()));
    let raw = RawMode::enter()?;
    let end = tokio::select! {
        shown = show(client, owner, from, &keys, &modes) => shown.map(TerminalEnd::Ended),
        () = type_keys(&keys, owner) => Ok(TerminalEnd::Detached),
        Err(error) = send_keys(client, owner, &keys, sent) => Err(error),
        () = async { while resizes.recv().await.is_some() { keys.wake() } } => Ok(TerminalEnd::Detached),
        never = tell_in_terminal(client, owner, &modes) => match never {},
        name = ends.recv() => Err(CommandError::new(
            CommandErrorKind::Interrupted,
            format!("ended by {name}. {}", owner.future()),
        )),
    };
    let restoring = modes.lock().unwrap_or_else(PoisonError::into_inner).restoring();
    // Without the terminal there is nothing to restore.
    let _ = output::print_bytes(LogStream::Stdout, restoring.as_bytes());
    drop(raw);
    end
}

/// Tells the person what they might not notice, on lines of their own.
async fn tell_in_terminal(client: &Client, owner: TerminalOwner, modes: &Mutex<ScreenModes>) -> Infallible {
    let has_own_lines = || !modes.lock().unwrap_or_else(PoisonError::into_inner).has_second_screen();
    tell_notices(&client.job(owner.job()), has_own_lines, |sentence| print_line(&format!("[{sentence}]")))
        .await
}

/// A line of its own. The terminal is raw: a new one does not begin at the left by itself.
fn print_line(line: &str) {
    let _ = output::print_bytes(LogStream::Stdout, format!("\r\n{line}\r\n").as_bytes());
}

/// Passes on what is typed until the person detaches, or the terminal is gone.
async fn type_keys(keys: &KeyQueue, owner: TerminalOwner) {
    let (mut pieces, mut parser) = (read_terminal(), EscapeParser::default());
    while let Some(piece) = pieces.recv().await {
        let (typed, action) = parser.parse(&piece);
        if !typed.is_empty() {
            keys.push(&typed).await;
        }
        match action {
            Some(EscapeAction::Detach) => return,
            Some(EscapeAction::Help) => {
                print_line(owner.escape_help());
            }
            None => {}
        }
    }
}

/// Shows what is printed until the end. Returns how a further process ended.
async fn show(
    client: &Client,
    owner: TerminalOwner,
    from: LogPosition,
    keys: &KeyQueue,
    modes: &Arc<Mutex<ScreenModes>>,
) -> Result<Option<Outcome>, CommandError> {
    let modes = Arc::clone(modes);
    let mut printer = LogPrinter::start(move |chunk: &LogChunk| print(chunk, &modes));
    let id = match owner {
        TerminalOwner::Job(job) => {
            let mut parts = client.log_parts(job, LogOptions { from, ..LogOptions::follow() });
            let next = async || {
                let Some(part) = parts.try_next().await? else { return Ok(None) };
                let attempt = part.rank.attempt.attempt;
                if keys.show(attempt) {
                    print_line(&format!(
                        "[attempt {attempt} of job {job} begins: what ran before has ended]"
                    ));
                }
                Ok(Some(part.chunk))
            };
            printer.print_all(next).await?;
            return Ok(None);
        }
        TerminalOwner::Exec(id) => id,
    };
    let mut from = from;
    loop {
        let ExecOutput { chunk, outcome } = read_present_exec(client, id, from).await?;
        from = LogPosition::At(chunk.next);
        printer.write(chunk).await?;
        if outcome.is_some() {
            printer.finish().await?;
            return Ok(outcome);
        }
    }
}

fn print(chunk: &LogChunk, modes: &Mutex<ScreenModes>) -> Result<(), CommandError> {
    for record in &chunk.records {
        match record.stream {
            LogStream::Stdout => {
                modes.lock().unwrap_or_else(PoisonError::into_inner).follow(&record.bytes);
                output::print_bytes(LogStream::Stdout, &record.bytes)?;
            }
            // A note of the worker, which knows of no terminal.
            LogStream::Stderr => {
                let text = String::from_utf8_lossy(&record.bytes).replace('\n', "\r\n");
                output::print_bytes(LogStream::Stdout, text.as_bytes())?;
            }
        }
    }
    Ok(())
}

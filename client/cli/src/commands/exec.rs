//! `exec`: runs a further process in the environment of a running job, with the streams or the terminal of
//! this one, and exits with its exit code. The process ends with this command.

use std::collections::BTreeMap;
use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use cohabit_client::types::{
    ExecId, ExecOutput, ExecRequest, INPUT_PIECE, InputPiece, JobPhase, LogPosition, Outcome, RefusalCode,
};
use cohabit_client::{Client, Error};
use cohabit_console::{CommandError, CommandErrorKind, output};
use tokio::time::sleep;

use super::job_reference::resolve_one;
use super::own_input;
use super::terminal::{
    EndSignals, TerminalEnd, TerminalOwner, check_terminal, connect_terminal, own_size, random_number,
    read_present_exec, terminal_variables,
};
use crate::arguments::ExecArguments;
use crate::endpoint::connect_to_wait;
use crate::log_printer::LogPrinter;
use crate::process::exit_code;

/// The pause while the worker is away.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) async fn exec(arguments: ExecArguments) -> Result<ExitCode, CommandError> {
    let terminal = match arguments.pty {
        true => {
            check_terminal("cohabit exec --pty", "cohabit exec JOB -- COMMAND")?;
            Some(own_size())
        }
        false => None,
    };
    let client = connect_to_wait(&arguments.connection).await?;
    let job = client.job(resolve_one(&client, &arguments.job).await?);
    let record = job.record().await?;
    if record.state.phase() != JobPhase::Placed {
        let message =
            format!("job {} is {}: only a running job takes further processes", job.id(), record.state);
        return Err(CommandError::new(CommandErrorKind::Impossible("wrong_state"), message));
    }
    let rank = job.id().attempt(record.attempt).rank(arguments.rank.unwrap_or(0));
    let id = ExecId { rank, number: random_number() };
    let environment = if terminal.is_some() { terminal_variables() } else { BTreeMap::new() };
    let mut signals = EndSignals::new()?;
    client.start_exec(ExecRequest { id, argv: arguments.command, environment, terminal }).await?;
    let ended = match terminal {
        Some(_) => on_terminal(&client, id).await,
        None => tokio::select! {
            ended = with_streams(&client, id) => ended,
            name = signals.recv() => {
                Err(CommandError::new(CommandErrorKind::Interrupted, format!("ended by {name}, and the process too")))
            }
        },
    };
    // Its worker would notice by itself, but later.
    let forgotten = client.end_exec(id).await;
    let outcome = ended?;
    forgotten?;
    Ok(report(outcome))
}

/// The exit code; says what happened, where that is not the process's own doing.
fn report(outcome: Option<Outcome>) -> ExitCode {
    match outcome {
        Some(outcome @ Outcome::NotStarted(_)) => {
            output::print_message(&format!("the process {outcome}"));
            exit_code(outcome.shell_code())
        }
        Some(outcome) => exit_code(outcome.shell_code()),
        None => ExitCode::SUCCESS,
    }
}

/// None if the person has detached, which ends the process.
async fn on_terminal(client: &Client, id: ExecId) -> Result<Option<Outcome>, CommandError> {
    match connect_terminal(client, TerminalOwner::Exec(id), LogPosition::Start).await? {
        TerminalEnd::Ended(outcome) => Ok(outcome),
        TerminalEnd::Detached => Ok(None),
    }
}

async fn with_streams(client: &Client, id: ExecId) -> Result<Option<Outcome>, CommandError> {
    tokio::select! {
        ended = print_output(client, id) => ended.map(Some),
        Err(error) = send_input(client, id) => Err(error),
    }
}

/// Prints all that it prints. Returns how it ended.
async fn print_output(client: &Client, id: ExecId) -> Result<Outcome, CommandError> {
    let mut printer = LogPrinter::start(|read: &ExecOutput| {
        read.chunk.records.iter().try_for_each(|record| output::print_bytes(record.stream, &record.bytes))
    });
    let mut from = LogPosition::Start;
    loop {
        let read = read_present_exec(client, id, from).await?;
        from = LogPosition::At(read.chunk.next);
        let outcome = read.outcome.clone();
        printer.write(read).await?;
        if let Some(outcome) = outcome {
            printer.finish().await?;
            return Ok(outcome);
        }
    }
}

/// Sends the standard input of this process. Never ends with success: it is dropped with the end of the
/// process.
async fn send_input(client: &Client, id: ExecId) -> Result<(), CommandError> {
    let mut pieces = own_input::is_given().then(own_input::read_own);
    let (mut offset, mut is_last) = (0, false);
    while !is_last {
        let next = match &mut pieces {
            Some(pieces) => pieces.recv().await.transpose().map_err(|error| own_input::unreadable(&error))?,
            None => None,
        };
        is_last = next.is_none();
        let bytes = next.unwrap_or_default();
        for piece in bytes.chunks(INPUT_PIECE).chain(is_last.then_some(&[][..])) {
            let piece = InputPiece {
                rank: id.rank,
                process: Some(id.number),
                offset,
                bytes: piece.to_vec(),
                is_last,
                typist: None,
            };
            offset = write_input(client, piece).await?;
        }
    }
    pending().await
}

/// Sends a piece, however long its worker is away: the end of the process ends this, too.
async fn write_input(client: &Client, piece: InputPiece) -> Result<u64, Error> {
    loop {
        match client.write_input(piece.clone()).await {
            Err(Error::Refused(refusal)) if refusal.code == RefusalCode::Unavailable => sleep(PAUSE).await,
            written => return written,
        }
    }
}

//! Takes the standard input of ranks from clients, and what they type on terminals: appends it to a file in
//! the rank's directory, from which the executor feeds the rank. So neither a link nor this daemon has to
//! last as long as the rank.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use cohabit_actor::blocking;
use cohabit_host::exec::ExecsDirectory;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_types::{
    Bytes, INPUT_PIECE, InputPiece, JobInput, MOST_INPUT, RankId, Refusal, RefusalCode, Typist,
};

use crate::state_directory::StateDirectory;

/// Appends a piece, and answers how many bytes of the input are there now: the next piece begins there. A
/// piece that is there already changes nothing.
pub(crate) async fn write(state: &StateDirectory, piece: InputPiece) -> Result<u64, Refusal> {
    let rank = RankDirectory::for_rank(&state.ranks(), piece.rank);
    blocking(move || {
        check_length(&piece)?;
        let directory = match piece.process {
            Some(number) => ExecsDirectory::of(&rank).process(number).as_rank(),
            None => rank,
        };
        match piece.process {
            Some(_) if directory.path().is_dir() && !directory.is_over() => {}
            Some(_) => return Err(not_running(piece.rank)),
            None => check(&directory, &piece)?,
        }
        match piece.typist {
            Some(typist) => type_keys(&directory, &piece, typist),
            None => append(&directory, &piece),
        }
    })
    .await
}

/// The terminal is there once the executor has made it.
fn type_keys(directory: &RankDirectory, piece: &InputPiece, typist: Typist) -> Result<u64, Refusal> {
    directory.terminal().append(typist, piece.offset, &piece.bytes).map_err(|error| {
        match error.kind() == io::ErrorKind::NotFound {
            true => not_running(piece.rank),
            false => unstored(piece.rank, &error),
        }
    })
}

fn append(directory: &RankDirectory, piece: &InputPiece) -> Result<u64, Refusal> {
    let failed = |error: io::Error| unstored(piece.rank, &error);
    let mut file = open(directory).map_err(failed)?;
    // A client that lost its link sends a piece again, perhaps while the same piece is still being appended.
    file.lock().map_err(failed)?;
    let there = file.metadata().map_err(failed)?.len();
    let Some(known) = there.checked_sub(piece.offset) else { return Ok(there) };
    let new = usize::try_from(known).ok().and_then(|known| piece.bytes.get(known..)).unwrap_or_default();
    let end = there + new.len() as u64;
    if end > MOST_INPUT {
        let most = Bytes(MOST_INPUT);
        let message =
            format!("the input of {} is longer than {most}: let the job read it from a file", piece.rank);
        return Err(Refusal::new(RefusalCode::Invalid, message));
    }
    file.write_all(new).map_err(failed)?;
    if piece.is_last && piece.offset + piece.bytes.len() as u64 == end {
        File::create(directory.input_end()).map_err(failed)?;
    }
    Ok(end)
}

fn check_length(piece: &InputPiece) -> Result<(), Refusal> {
    if piece.bytes.len() > INPUT_PIECE {
        let message =
            format!("a piece of an input has at most {INPUT_PIECE} bytes, not {}", piece.bytes.len());
        return Err(Refusal::new(RefusalCode::Invalid, message));
    }
    Ok(())
}

/// Whether this rank takes this piece.
fn check(directory: &RankDirectory, piece: &InputPiece) -> Result<(), Refusal> {
    let start = directory.start().ok().flatten();
    let Some(start) = start.filter(|_| !directory.is_over()) else {
        return Err(not_running(piece.rank));
    };
    let refuse = |message| Err(Refusal::new(RefusalCode::WrongState, message));
    match (start.rank.spec.input, piece.typist) {
        (JobInput::Sent, None) | (JobInput::Terminal(_), Some(_)) if piece.rank.rank == 0 => Ok(()),
        (JobInput::Terminal(_), None) => {
            refuse(format!("{} reads from its terminal: type there with cohabit attach", piece.rank))
        }
        (JobInput::Sent | JobInput::Empty, Some(_)) => refuse(format!(
            "job {} has no terminal, which only cohabit shell and cohabit run --pty give: see its output with \
             cohabit logs -f",
            piece.rank.attempt.job
        )),
        (JobInput::Sent | JobInput::Empty, None) | (JobInput::Terminal(_), Some(_)) => {
            refuse(format!("{} reads nothing from its standard input", piece.rank))
        }
    }
}

fn unstored(rank: RankId, error: &io::Error) -> Refusal {
    let message = format!("the worker cannot keep the input of {rank}: {error}");
    Refusal::new(RefusalCode::StorageFailed, message)
}

fn not_running(rank: RankId) -> Refusal {
    Refusal::new(RefusalCode::Unavailable, format!("{rank} does not run on this worker"))
}

/// Only the executor reads it, which is the daemon's user.
fn open(directory: &RankDirectory) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(directory.input())
}

//! `cp`: copies files of jobs to this machine, while they run and after they have ended.
//!
//! What arrives is written by `cohabit-transfer`, which believes nothing that a node sends. A file has its
//! own name only when it is whole; Ctrl-C removes what is not.

mod destination;
mod piece_writer;

use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cohabit_client::types::{Bytes, CopyDepth, CopyId, CopyRead, FollowMode, JobId, RefusalCode, counted};
use cohabit_client::{Client, Error, while_away};
use cohabit_console::{CommandError, CommandErrorKind, output, printable_line, with_schema};
use cohabit_transfer::{ReceiveError, ReceiveLimits, Received, Receiver, TransferFailure};
use tokio::time::{sleep, timeout};

use self::destination::Destination;
use self::piece_writer::PieceWriter;
use super::job_reference::resolve_one;
use super::terminal::EndSignals;
use crate::arguments::{CpArguments, JobPath, OutputFormat};
use crate::endpoint::connect_to_wait;
use crate::render::copy_document::CopyDocument;

/// How often the progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(200);
/// How often the worker hears of a copy that waits for the disk here, or for a reader of the output.
const ASKED_EVERY: Duration = Duration::from_secs(20);
/// How long the removal of what is not whole may take.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn cp(arguments: CpArguments) -> Result<ExitCode, CommandError> {
    let (sources, destination) = arguments.sources_and_destination()?;
    let destination = Destination::of(destination, &sources, &arguments)?;
    let client = connect_to_wait(&arguments.connection).await?;
    let mut signals = EndSignals::new()?;
    let mut all = Received::default();
    for source in &sources {
        let received = copy(&client, &arguments, source, &destination, &mut signals).await?;
        for (path, why) in &received.reasons {
            let text = format!("left out {}:{}: '{path}': {why}", source.job, source.path);
            output::print_message(&printable_line(&text));
        }
        add(&mut all, received);
    }
    report(&all, &destination, arguments.display.output)?;
    Ok(if all.skipped == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Copies one file or directory.
async fn copy(
    client: &Client,
    arguments: &CpArguments,
    source: &JobPath,
    destination: &Destination,
    signals: &mut EndSignals,
) -> Result<Received, CommandError> {
    let job = resolve_one(client, &source.job).await?;
    let depth = if arguments.recursive { CopyDepth::Tree } else { CopyDepth::File };
    let rank = arguments.rank.unwrap_or(0);
    let id = client.job(job).start_copy(&source.path, rank, depth, arguments.limit).await?;
    let limits = ReceiveLimits { bytes: arguments.limit };
    let mut writer = PieceWriter::start(Receiver::new(destination.target(source), limits));
    let received = tokio::select! {
        received = async {
            fetch(client, id, &writer).await?;
            writer.finish().await.map_err(|error| of_receiving(job, &destination.shown(source), error))
        } => received,
        name = signals.recv() => {
            let message = format!("interrupted by {name}: the file that was not whole is removed");
            Err(CommandError::new(CommandErrorKind::Interrupted, message))
        }
    };
    output::clear_progress();
    if received.is_err() {
        writer.give_up();
        // Nobody waits for a disk, or for a reader of the output, that does not go on.
        let _ = timeout(REMOVED_WITHIN, writer.finish()).await;
    }
    // Its worker would notice by itself, but later.
    let _ = client.end_copy(id).await;
    received
}

/// Fetches all pieces, unless they cannot be written: then the writer knows why.
async fn fetch(client: &Client, id: CopyId, writer: &PieceWriter) -> Result<(), CommandError> {
    let (mut from, mut shown_at) = (0, Instant::now());
    loop {
        let read = CopyRead { id, from, at_end: FollowMode::Wait };
        let piece = while_away(|| client.read_copy(read)).await.map_err(of_reading)?;
        from += piece.bytes.len() as u64;
        let is_last = piece.is_last;
        let mut writing = pin!(writer.write(piece.bytes));
        let is_written = loop {
            tokio::select! {
                is_written = &mut writing => break is_written,
                // The worker takes a client that is silent for gone. This piece is asked for again.
                () = sleep(ASKED_EVERY) => {
                    let _ = client.read_copy(CopyRead { id, from, at_end: FollowMode::Return }).await;
                }
            }
        };
        if !is_written || is_last {
            return Ok(());
        }
        if shown_at.elapsed() >= SHOWN_EVERY {
            shown_at = Instant::now();
            let (written, announced) = writer.progress();
            output::show_progress(&format!("{} of {}", Bytes(written), Bytes(announced)));
        }
    }
}

fn add(all: &mut Received, received: Received) {
    all.files += received.files;
    all.links += received.links;
    all.bytes += received.bytes;
    all.skipped += received.skipped;
    all.reasons.extend(received.reasons);
}

fn report(all: &Received, destination: &Destination, format: OutputFormat) -> Result<(), CommandError> {
    match format {
        OutputFormat::Json => return output::print_document(&with_schema(CopyDocument::from(all))),
        OutputFormat::Table | OutputFormat::Wide if *destination != Destination::Output => {
            output::print_message(&summary(all));
        }
        OutputFormat::Table | OutputFormat::Wide | OutputFormat::Quiet => {}
    }
    Ok(())
}

fn summary(all: &Received) -> String {
    let links = match all.links {
        0 => String::new(),
        links => format!(", {}", counted(links, "link", "links")),
    };
    let skipped = match all.skipped {
        0 => String::new(),
        skipped => format!("; left out {skipped}"),
    };
    format!("copied {}{links}, {}{skipped}", counted(all.files, "file", "files"), Bytes(all.bytes))
}

/// A copy that its worker has forgotten is not a missing file.
fn of_reading(error: Error) -> CommandError {
    if let Error::Refused(refusal) = &error
        && refusal.code == RefusalCode::NotFound
    {
        return CommandError::new(CommandErrorKind::TryLater, format!("{}: copy it again", refusal.message));
    }
    error.into()
}

fn of_receiving(job: JobId, destination: &Path, error: ReceiveError) -> CommandError {
    let kind = match &error {
        ReceiveError::Sender { kind, .. } => match kind {
            TransferFailure::NotFound => CommandErrorKind::NotFound,
            TransferFailure::NotAllowed => CommandErrorKind::NotAllowed,
            TransferFailure::Directory => CommandErrorKind::Usage,
            TransferFailure::SpecialFile => CommandErrorKind::Impossible("special_file"),
            TransferFailure::TooLarge => CommandErrorKind::Impossible("too_large"),
            TransferFailure::Failed => CommandErrorKind::InputOutput,
        },
        ReceiveError::Stream(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            CommandErrorKind::ClosedPipe
        }
        ReceiveError::Write { .. } | ReceiveError::Stream(_) | ReceiveError::CutOff => {
            CommandErrorKind::InputOutput
        }
        ReceiveError::Invalid(_) => CommandErrorKind::Protocol,
        ReceiveError::TooLarge(_) => CommandErrorKind::Impossible("too_large"),
    };
    let message = match &error {
        ReceiveError::Write { path, source } => {
            let place = if path == "." { destination.to_owned() } else { destination.join(path) };
            format!("'{}' cannot be written: {source}", place.display())
        }
        ReceiveError::Sender { .. }
        | ReceiveError::Stream(_)
        | ReceiveError::CutOff
        | ReceiveError::Invalid(_)
        | ReceiveError::TooLarge(_) => format!("job {job}: {error}"),
    };
    CommandError::new(kind, printable_line(&message).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_says_what_was_copied_and_what_was_not() {
        let mut all = Received { files: 1, bytes: 3 << 20, ..Received::default() };
        assert_eq!(summary(&all), "copied 1 file, 3 MiB");
        add(&mut all, Received { files: 2, links: 1, skipped: 4, ..Received::default() });
        assert_eq!(summary(&all), "copied 3 files, 1 link, 3 MiB; left out 4");
    }

    #[test]
    fn what_goes_wrong_has_the_exit_codes_of_other_commands() {
        let of = |kind| {
            of_receiving(
                JobId::new(12),
                Path::new("out"),
                ReceiveError::Sender { kind, message: "'x' is missing".into() },
            )
        };
        assert_eq!(of(TransferFailure::NotFound).kind, CommandErrorKind::NotFound);
        assert_eq!(of(TransferFailure::NotAllowed).kind, CommandErrorKind::NotAllowed);
        assert_eq!(of(TransferFailure::Directory).kind, CommandErrorKind::Usage);
        assert_eq!(of(TransferFailure::NotFound).message, "job 12: 'x' is missing");
        let closed = ReceiveError::Stream(io::ErrorKind::BrokenPipe.into());
        assert_eq!(of_receiving(JobId::new(12), Path::new("out"), closed).kind, CommandErrorKind::ClosedPipe);
    }
}

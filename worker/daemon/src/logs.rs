//! Answers requests for the output of ranks, whether they run or ended long ago.

use std::io;
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_host::log::LogDirectory;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_types::{FollowMode, LogChunk, LogPosition, LogRequest, Refusal, RefusalCode};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::removed_ranks::RemovalReason;
use crate::state_directory::StateDirectory;

/// How long a request waits for more output.
const LONG_POLL: Duration = Duration::from_secs(15);

/// The first pause between two polls where the kernel does not tell of new output. It doubles while there is
/// none.
const MIN_PAUSE: Duration = Duration::from_millis(4);

/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_millis(128);

/// The pause where the kernel tells.
const WATCHED_PAUSE: Duration = Duration::from_secs(2);

/// How long more is waited for after something came: a rank that prints much sends fewer messages.
const GATHER: Duration = Duration::from_millis(1);

/// Part of a rank's output. At the end of the output, waits for more if the request says so.
pub(crate) async fn read(
    state: &StateDirectory,
    node: &str,
    request: LogRequest,
) -> Result<LogChunk, Refusal> {
    let folder = RankDirectory::for_rank(&state.ranks(), request.rank);
    let deadline = Instant::now() + LONG_POLL;
    match follow(state, &folder, request.from, request.at_end, deadline).await? {
        Some(chunk) => Ok(chunk),
        None => answer_removed(state, node, request).await,
    }
}

/// Part of the output in this directory of a rank, or of a further process of one; `None` if it is removed.
/// At the end, waits for more if it is to.
pub(crate) async fn follow(
    state: &StateDirectory,
    folder: &RankDirectory,
    from: LogPosition,
    at_end: FollowMode,
    deadline: Instant,
) -> Result<Option<LogChunk>, Refusal> {
    let mut ends = state.ends();
    loop {
        let Some((extent, chunk)) = read_now(folder, from).await? else { return Ok(None) };
        let waits = chunk.records.is_empty() && !chunk.complete && at_end == FollowMode::Wait;
        if !waits || !grows(state, folder, extent, deadline, &mut ends).await? {
            return Ok(Some(chunk));
        }
    }
}

/// Where the log ends on disk, and whether the rank has ended.
type Extent = ((u64, u64), bool);

/// Waits until there is more to read or the rank has ended; false at the deadline.
async fn grows(
    state: &StateDirectory,
    folder: &RankDirectory,
    seen: Extent,
    deadline: Instant,
    ends: &mut watch::Receiver<()>,
) -> Result<bool, Refusal> {
    let mut pause = MIN_PAUSE;
    while Instant::now() < deadline {
        let (changes, followed) = (state.log_changes().clone(), folder.clone());
        // Before the look: nothing is printed between the two.
        let follower = blocking(move || changes.follow(&followed.log(), followed.path())).await;
        if extent(folder).await? != seen {
            return Ok(true);
        }
        match follower {
            Some(mut follower) => tokio::select! {
                () = follower.changed() => sleep(GATHER).await,
                _ = timeout(WATCHED_PAUSE, ends.changed()) => {}
            },
            None => {
                // The end of a rank is polled at once.
                let _ = timeout(pause, ends.changed()).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        }
    }
    Ok(false)
}

async fn extent(folder: &RankDirectory) -> Result<Extent, Refusal> {
    let folder = folder.clone();
    let extent = move || {
        let extent = LogDirectory::new(folder.log()).extent()?;
        Ok((extent, folder.is_over() || !folder.path().is_dir()))
    };
    blocking(extent).await.map_err(unreadable)
}

/// `None` if the directory is removed. Whether the rank has ended is read first: after its end nothing more
/// is printed.
async fn read_now(folder: &RankDirectory, from: LogPosition) -> Result<Option<(Extent, LogChunk)>, Refusal> {
    let folder = folder.clone();
    let read = move || {
        let over = folder.is_over();
        let log = LogDirectory::new(folder.log());
        let extent = log.extent()?;
        let chunk = log.read(from)?;
        // It may be removed while it is read.
        let is_there = if over { folder.is_over() } else { folder.path().is_dir() };
        let chunk = LogChunk { complete: chunk.complete && over, ..chunk };
        Ok(is_there.then_some(((extent, over), chunk)))
    };
    blocking(read).await.map_err(unreadable)
}

/// The answer where a rank has no directory.
async fn answer_removed(
    state: &StateDirectory,
    node: &str,
    request: LogRequest,
) -> Result<LogChunk, Refusal> {
    let (rank, removed) = (request.rank, state.removed_ranks());
    let cause = match blocking(move || removed.find(rank)).await.map_err(unreadable)? {
        Some(RemovalReason::Empty) => return Ok(LogChunk { complete: true, ..LogChunk::default() }),
        Some(RemovalReason::Space) => {
            "the output of ended jobs took more space there than the setting 'log-total' of the worker allows"
        }
        Some(RemovalReason::Count) => {
            "output of more ended ranks was there than the setting 'log-ranks' of the worker allows"
        }
        None => {
            let message = format!("the output of {rank} is no longer kept on node {node}");
            return Err(Refusal::new(RefusalCode::NotFound, message));
        }
    };
    let message =
        format!("the output of {rank} was removed from node {node}: {cause}, and the oldest goes first");
    Err(Refusal::new(RefusalCode::NotFound, message))
}

fn unreadable(error: io::Error) -> Refusal {
    Refusal::new(RefusalCode::Internal, format!("the worker cannot read the output: {error}"))
}

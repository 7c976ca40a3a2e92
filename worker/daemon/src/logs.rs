//! Answers requests for the output of ranks, whether they run or ended long ago.

use std::io;
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_host::log::LogDirectory;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_types::{FollowMode, LogChunk, LogRequest, Refusal, RefusalCode};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::state_directory::StateDirectory;

/// How long a request waits for more output.
const LONG_POLL: Duration = Duration::from_secs(15);

/// The first pause between two polls. It doubles while there is no new output.
const MIN_PAUSE: Duration = Duration::from_millis(4);

/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_millis(128);

/// Part of a rank's output. At the end of the output, waits for more if the request says so.
pub(crate) async fn read(state: &StateDirectory, request: LogRequest) -> Result<LogChunk, Refusal> {
    let folder = RankDirectory::for_rank(&state.ranks(), request.rank);
    let path = folder.path().to_owned();
    if !blocking(move || path.is_dir()).await {
        let message = format!("the output of {} is no longer kept on this worker", request.rank);
        return Err(Refusal::new(RefusalCode::NotFound, message));
    }
    let deadline = Instant::now() + LONG_POLL;
    let mut ends = state.ends();
    loop {
        let extent = extent(&folder).await?;
        let chunk = read_now(&folder, request).await?;
        let waits = chunk.records.is_empty() && !chunk.complete && request.at_end == FollowMode::Wait;
        if !waits || !grows(&folder, extent, deadline, &mut ends).await? {
            return Ok(chunk);
        }
    }
}

/// Where the log ends on disk, and whether the rank has ended.
type Extent = ((u64, u64), bool);

/// Waits until there is more to read or the rank has ended; false at the deadline.
async fn grows(
    folder: &RankDirectory,
    seen: Extent,
    deadline: Instant,
    ends: &mut watch::Receiver<()>,
) -> Result<bool, Refusal> {
    let mut pause = MIN_PAUSE;
    while Instant::now() < deadline {
        if extent(folder).await? != seen {
            return Ok(true);
        }
        // The end of a rank is polled at once.
        let _ = timeout(pause, ends.changed()).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
    Ok(false)
}

async fn extent(folder: &RankDirectory) -> Result<Extent, Refusal> {
    let folder = folder.clone();
    let extent = move || Ok((LogDirectory::new(folder.log()).extent()?, folder.is_over()));
    blocking(extent).await.map_err(unreadable)
}

/// Whether the rank has ended is read first: after its end nothing more is printed.
async fn read_now(folder: &RankDirectory, request: LogRequest) -> Result<LogChunk, Refusal> {
    let folder = folder.clone();
    let read = move || {
        let over = folder.is_over();
        let chunk = LogDirectory::new(folder.log()).read(request.from)?;
        Ok(LogChunk { complete: chunk.complete && over, ..chunk })
    };
    blocking(read).await.map_err(unreadable)
}

fn unreadable(error: io::Error) -> Refusal {
    Refusal::new(RefusalCode::Internal, format!("the worker cannot read the output: {error}"))
}

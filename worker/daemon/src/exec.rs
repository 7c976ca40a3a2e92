//! Further processes of ranks, for clients: asks executors to start them, and reads what they print. Neither
//! a link nor this daemon has to last as long as a process.

use std::io;
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_host::exec::{ExecDirectory, ExecRefusal, ExecsDirectory};
use cohabit_host::rank_directory::RankDirectory;
use cohabit_types::{
    ExecId, ExecOutput, ExecRead, ExecRequest, FollowMode, LogPosition, RankId, Refusal, RefusalCode,
};
use tokio::time::Instant;

use crate::logs;
use crate::state_directory::StateDirectory;

/// How long a request waits for more output: the executor counts how long nobody asked.
const LONG_POLL: Duration = Duration::from_secs(10);

/// Starts a process; does nothing the second time.
pub(crate) async fn start(state: &StateDirectory, request: ExecRequest) -> Result<(), Refusal> {
    request.check().map_err(|why| Refusal::new(RefusalCode::Invalid, why))?;
    let rank = RankDirectory::for_rank(&state.ranks(), request.id.rank);
    blocking(move || {
        if rank.start().ok().flatten().is_none() || rank.is_over() {
            return Err(not_running(request.id.rank));
        }
        let execs = ExecsDirectory::of(&rank);
        let made = execs.request(&request);
        // Its executor has removed what was there when it ended, and takes nothing any more.
        if rank.is_over() {
            let _ = execs.remove();
            return Err(not_running(request.id.rank));
        }
        made.map_err(|error| match error {
            ExecRefusal::TooMany => {
                Refusal::new(RefusalCode::WrongState, format!("beside {}, {error}", request.id.rank))
            }
            ExecRefusal::Disk(error) if error.kind() == io::ErrorKind::NotFound => {
                not_running(request.id.rank)
            }
            ExecRefusal::Disk(error) => {
                let message =
                    format!("the worker cannot ask for a process beside {}: {error}", request.id.rank);
                Refusal::new(RefusalCode::StorageFailed, message)
            }
        })
    })
    .await
}

/// A piece of its output; waits for more at the end.
pub(crate) async fn read(state: &StateDirectory, read: ExecRead) -> Result<ExecOutput, Refusal> {
    let directory = directory_of(state, read.id);
    let position = match read.from {
        LogPosition::At(position) => position,
        LogPosition::Start | LogPosition::Tail(_) => 0,
    };
    let wanted = directory.clone();
    blocking(move || wanted.want(position)).await.map_err(|error| gone(read.id, &error))?;
    let files = directory.as_rank();
    let deadline = Instant::now() + LONG_POLL;
    let chunk = logs::follow(state, &files, LogPosition::At(position), FollowMode::Wait, deadline).await?;
    let chunk = chunk.ok_or_else(|| gone(read.id, &io::ErrorKind::NotFound.into()))?;
    let outcome = match chunk.complete {
        true => blocking(move || files.ended()).await.ok().flatten().map(|ended| ended.ending.outcome),
        false => None,
    };
    Ok(ExecOutput { chunk, outcome })
}

/// Ends it, if it runs, and forgets it.
pub(crate) async fn end(state: &StateDirectory, id: ExecId) -> Result<(), Refusal> {
    let directory = directory_of(state, id);
    let end = move || match directory.as_rank().is_over() {
        // There is room for another one at once.
        true => directory.remove(),
        false => directory.end(),
    };
    match blocking(end).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        ended => ended.map_err(|error| gone(id, &error)),
    }
}

/// The directory of a process.
pub(crate) fn directory_of(state: &StateDirectory, id: ExecId) -> ExecDirectory {
    ExecsDirectory::of(&RankDirectory::for_rank(&state.ranks(), id.rank)).process(id.number)
}

fn not_running(rank: RankId) -> Refusal {
    let message = format!("{rank} does not run on this worker, or was started by an earlier release");
    Refusal::new(RefusalCode::Unavailable, message)
}

fn gone(id: ExecId, error: &io::Error) -> Refusal {
    let is_known = error.kind() == io::ErrorKind::NotFound;
    let why = if is_known { String::new() } else { format!(": {error}") };
    let message =
        format!("the process beside {} is gone, with its job or because its client was silent{why}", id.rank);
    Refusal::new(RefusalCode::NotFound, message)
}

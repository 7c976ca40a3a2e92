//! The output of a rank, piece by piece: the answer waits until there is more.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use cohabit_client::Error;
use cohabit_client::types::{FollowMode, JobId, JobRecord, LogChunk, LogPosition, LogRequest};
use serde::Deserialize;
use tokio::time::timeout;

use super::failure;
use super::job::{OutputQuery, no_job};
use crate::state::WebState;
use crate::views::log::{LogPiece, LogPlace};

/// Lines of the end of the output that a page begins with.
const FIRST_LINES: u64 = 200;
/// How long the worker may take for those.
const PATIENCE: Duration = Duration::from_secs(4);

/// Where to go on.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct PieceQuery {
    rank: u32,
    attempt: u32,
    from: u64,
}

/// The next piece of the output.
pub(super) async fn log(
    State(state): State<Arc<WebState>>,
    Path(job): Path<String>,
    Query(query): Query<PieceQuery>,
) -> Response {
    let Ok(job) = job.parse::<JobId>() else { return no_job() };
    let place = LogPlace { job, attempt: query.attempt, rank: query.rank };
    let Ok(_permit) = state.log_followers.try_acquire() else {
        return failure(
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many logs are followed at once: close some pages.",
        );
    };
    state.viewers.look(std::time::Instant::now(), []);
    let piece = match read(&state, place, LogPosition::At(query.from), FollowMode::Wait).await {
        Ok(chunk) => LogPiece::new(place, &chunk),
        // The script asks again.
        Err(Error::Unreachable(_)) => return failure(StatusCode::SERVICE_UNAVAILABLE, "The head is away."),
        Err(error) => LogPiece::problem(place, error.to_string()),
    };
    match piece.render() {
        Ok(piece) => Html(piece).into_response(),
        Err(_) => failure(StatusCode::INTERNAL_SERVER_ERROR, "The output cannot be rendered."),
    }
}

/// The rank that the address names; none if it has not started.
pub(super) fn place_of(record: &JobRecord, query: OutputQuery) -> Option<LogPlace> {
    let attempt = query.attempt.unwrap_or(record.attempt).min(record.attempt);
    (attempt > 0).then_some(LogPlace { job: record.id, attempt, rank: query.rank })
}

/// The end of the output.
pub(super) async fn first_piece(state: &WebState, place: LogPlace) -> LogPiece {
    let end = read(state, place, LogPosition::Tail(FIRST_LINES), FollowMode::Return);
    match timeout(PATIENCE, end).await {
        Ok(Ok(chunk)) => LogPiece::new(place, &chunk),
        Ok(Err(error)) => LogPiece::problem(place, error.to_string()),
        Err(_) => LogPiece::problem(place, "the worker did not answer in time: reload the page".into()),
    }
}

async fn read(
    state: &WebState,
    place: LogPlace,
    from: LogPosition,
    at_end: FollowMode,
) -> Result<LogChunk, Error> {
    let rank = place.job.attempt(place.attempt).rank(place.rank);
    state.client.read_log(LogRequest { rank, from, at_end }).await
}

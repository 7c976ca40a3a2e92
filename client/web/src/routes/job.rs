//! The page of one job.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use cohabit_client::types::{JobId, Role};
use serde::Deserialize;

use super::answer::Asked;
use super::failure;
use super::log::{first_piece, place_of};
use crate::state::WebState;
use crate::views::job::JobView;
use crate::views::log::LogSection;

/// Below the job for a viewer.
const NO_OUTPUT: &str = "<p class=\"quiet\">A viewer does not see commands, output, metrics over time and \
                         history: the job's user and admins do.</p>";

/// Which output is shown below the job.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct OutputQuery {
    #[serde(default)]
    pub(super) rank: u32,
    /// The latest without it.
    #[serde(default)]
    pub(super) attempt: Option<u32>,
}

pub(super) async fn job(
    State(state): State<Arc<WebState>>,
    Path(job): Path<String>,
    Query(query): Query<OutputQuery>,
    headers: HeaderMap,
    address: Uri,
) -> Response {
    let Ok(job) = job.parse::<JobId>() else { return no_job() };
    state.freshen().await;
    let asked = Asked { state: &state, headers: &headers, address: &address };
    let answer = match state.job(job).await {
        Ok(answer) => answer,
        Err(error) => return asked.problem(&state.cluster.borrow(), &error),
    };
    let metrics = state.metrics(&answer.record).await;
    let is_viewer = state.by.role == Role::Viewer;
    let section = match headers.contains_key("hx-request") || answer.record.array.is_some() || is_viewer {
        true => None,
        false => output(&state, &answer.record, query).await,
    };
    let cluster = state.cluster.borrow();
    let title = format!("Job {job}");
    let view = JobView::new(&state, &cluster, &answer, &metrics);
    let still = || match is_viewer {
        true => NO_OUTPUT.to_owned(),
        false => section.and_then(|section| section.render().ok()).unwrap_or_default(),
    };
    asked.show_with(&cluster, &title, &view, still)
}

pub(super) fn no_job() -> Response {
    failure(StatusCode::NOT_FOUND, "A job is a number like 12, or 12.5 for a member of an array.")
}

/// The output of a rank, if the job has started.
async fn output(
    state: &WebState,
    record: &cohabit_client::types::JobRecord,
    query: OutputQuery,
) -> Option<LogSection> {
    let place = place_of(record, query)?;
    let attempt = record.attempts.iter().find(|it| it.attempt == place.attempt);
    let ranks = attempt.map_or(1, |attempt| attempt.ranks.len()) as u32;
    let piece = first_piece(state, place).await;
    Some(LogSection { place, ranks, attempts: record.attempt, piece })
}

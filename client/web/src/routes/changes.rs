//! Changes of jobs: the question, and what came of it. The head decides what this token may do.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use cohabit_client::types::{ChangeResult, JobChange, JobId, Role};
use cohabit_console::records::change_results::describe_change_result;

use super::answer::{Asked, describe, describe_refusal};
use super::failure;
use super::job::no_job;
use crate::state::WebState;
use crate::views::confirmation::Confirmation;
use crate::views::job::CHANGES;
use crate::views::line;

/// Asks whether the change is meant.
pub(super) async fn confirm(
    State(state): State<Arc<WebState>>,
    Path((job, change)): Path<(String, String)>,
    headers: HeaderMap,
    address: Uri,
) -> Response {
    let Ok(job) = job.parse::<JobId>() else { return no_job() };
    let Some(change) = change_named(&change) else { return no_change() };
    if state.by.role == Role::Viewer {
        return failure(StatusCode::FORBIDDEN, "These pages are those of a viewer, who changes no job.");
    }
    let asked = Asked { state: &state, headers: &headers, address: &address };
    let answer = state.job(job).await;
    let cluster = state.cluster.borrow();
    match answer {
        Ok(answer) => asked.show(&cluster, "Confirm", &Confirmation::new(&answer.record, change)),
        Err(error) => asked.problem(&cluster, &error),
    }
}

/// Makes the change.
pub(super) async fn change(
    State(state): State<Arc<WebState>>,
    Path((job, change)): Path<(String, String)>,
) -> Response {
    let Ok(job) = job.parse::<JobId>() else { return no_job() };
    let Some(change) = change_named(&change) else { return no_change() };
    let result = match state.client.change(change, &[job]).await {
        Ok(results) => results.into_iter().next().map(|(_, result)| result),
        Err(error) => return failure(describe(&error).0, &line(&error.to_string())),
    };
    match result {
        Some(ChangeResult::Done | ChangeResult::Already) => {
            (StatusCode::SEE_OTHER, [(LOCATION, format!("/jobs/{job}"))]).into_response()
        }
        Some(ChangeResult::Refused(refusal)) => {
            let (status, _) = describe_refusal(refusal.code);
            failure(status, &describe_change_result(change, job, &ChangeResult::Refused(refusal)))
        }
        None => failure(StatusCode::BAD_GATEWAY, "The answer of the head lacks the result of the change."),
    }
}

fn change_named(verb: &str) -> Option<JobChange> {
    CHANGES.into_iter().find(|change| change.verb() == verb)
}

fn no_change() -> Response {
    failure(StatusCode::NOT_FOUND, "A job can be changed by cancel, hold, release or requeue.")
}

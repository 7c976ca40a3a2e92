//! Which request gets which view.
//!
//! A page is made of a part that is kept up to date and one that is not. The script asks for the first part
//! alone, by the same address; its `ETag` tells when it has not changed.

mod answer;
mod assets;
mod changes;
mod enter;
mod job;
mod log;
mod pages;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use tokio::time::timeout;

pub(crate) use self::answer::failure;
use crate::access::{guard, headers};
use crate::state::WebState;

/// How long an answer may take; a log that is followed waits for 20 seconds.
const LONGEST_ANSWER: Duration = Duration::from_secs(40);

/// All routes with their checks.
pub(crate) fn router(state: Arc<WebState>) -> Router {
    Router::new()
        .route("/", get(pages::overview))
        .route("/queue", get(pages::queue))
        .route("/nodes", get(pages::nodes))
        .route("/timeline", get(pages::timeline))
        .route("/arrays", get(pages::arrays))
        .route("/arrays/{number}", get(pages::array))
        .route("/people", get(pages::people))
        .route("/jobs/{job}", get(job::job))
        .route("/jobs/{job}/log", get(log::log))
        .route("/jobs/{job}/confirm/{change}", get(changes::confirm))
        .route("/jobs/{job}/{change}", post(changes::change))
        .route("/enter", get(enter::enter))
        .route("/assets/{name}", get(assets::asset))
        .fallback(|| async { failure(StatusCode::NOT_FOUND, "There is no such page.") })
        .layer(middleware::from_fn(limit_time))
        .layer(middleware::from_fn_with_state(Arc::clone(&state), guard::check))
        .layer(middleware::from_fn(headers::add_headers))
        .with_state(state)
}

async fn limit_time(request: Request, next: Next) -> Response {
    match timeout(LONGEST_ANSWER, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            failure(StatusCode::GATEWAY_TIMEOUT, "The answer took too long. Reload the page in a while.")
        }
    }
}

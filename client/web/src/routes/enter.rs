//! The door: a one-time key becomes a session.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::failure;
use crate::access::entry::SESSION_LIFETIME;
use crate::access::guard::cookie_name;
use crate::state::WebState;

/// The key in the address.
#[derive(Deserialize)]
pub(super) struct EntryQuery {
    #[serde(default)]
    key: String,
}

/// Opens a session, and hides the key by a redirect.
pub(super) async fn enter(State(state): State<Arc<WebState>>, Query(query): Query<EntryQuery>) -> Response {
    let Some(session) = state.entry.redeem(&query.key, Instant::now()) else {
        return failure(
            StatusCode::FORBIDDEN,
            "The key in the address was used before, or is older than a minute. Press Enter in the terminal where \
             `cohabit web` runs, and open the address that it prints.",
        );
    };
    let name = cookie_name(state.port);
    let age = SESSION_LIFETIME.as_secs();
    let secure = if state.tls.is_some() { "; Secure" } else { "" };
    let cookie = format!("{name}={session}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
    (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie.as_str()), (LOCATION, "/")]).into_response()
}

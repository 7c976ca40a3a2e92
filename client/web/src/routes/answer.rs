//! Views as answers: whole pages, the parts of them that are kept up to date, and failures.

use askama::Template;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use cohabit_client::Error;
use cohabit_client::types::RefusalCode;
use sha2::{Digest, Sha256};

use super::assets;
use crate::cluster::Cluster;
use crate::cluster::answer_cache::AnswerError;
use crate::state::WebState;
use crate::views::confirmation::{Failure, Problem};
use crate::views::page::{Live, Page};

/// Set by htmx on the requests of the script.
const BY_SCRIPT: HeaderName = HeaderName::from_static("hx-request");

/// What a request asks for, apart from its route.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) state: &'a WebState,
    pub(super) headers: &'a HeaderMap,
    pub(super) address: &'a Uri,
}

impl Asked<'_> {
    /// The page with this title and view.
    pub(super) fn show(&self, cluster: &Cluster, title: &str, view: &impl Template) -> Response {
        self.show_with(cluster, title, view, String::new)
    }

    /// The same with a part that is not kept up to date, as HTML.
    pub(super) fn show_with(
        &self,
        cluster: &Cluster,
        title: &str,
        view: &impl Template,
        still: impl FnOnce() -> String,
    ) -> Response {
        let address = self.address.path_and_query().map_or("/", |address| address.as_str());
        let live = view.render().and_then(|view| Live::new(self.state, cluster, address, &view).render());
        let Ok(live) = live else { return internal_failure() };
        let tag = format!("\"{}\"", short_digest(live.as_bytes()));
        if self.headers.get(IF_NONE_MATCH).is_some_and(|known| known == tag.as_str()) {
            return tagged(StatusCode::NOT_MODIFIED.into_response(), &tag);
        }
        if self.headers.contains_key(BY_SCRIPT) {
            return tagged(Html(live).into_response(), &tag);
        }
        match Page::new(self.state, title, assets::version(), &live, &still()).render() {
            Ok(page) => tagged(Html(page).into_response(), &tag),
            Err(_) => internal_failure(),
        }
    }

    /// A page that says why there is no view.
    pub(super) fn problem(&self, cluster: &Cluster, error: &AnswerError) -> Response {
        let (status, title) = match error {
            AnswerError::Late => (StatusCode::SERVICE_UNAVAILABLE, "The head is away"),
            AnswerError::Head(error) => describe(error),
        };
        let why = error.to_string();
        let mut response = self.show(cluster, title, &Problem { title, why: &why });
        *response.status_mut() = status;
        response
    }
}

/// The status and the title for an error of the head.
pub(super) fn describe(error: &Error) -> (StatusCode, &'static str) {
    if let Error::NotAllowed(_) = error {
        return (StatusCode::FORBIDDEN, "Not allowed");
    }
    if let Error::Unreachable(_) = error {
        return (StatusCode::SERVICE_UNAVAILABLE, "The head is away");
    }
    if let Error::Refused(refusal) = error {
        return describe_refusal(refusal.code);
    }
    (StatusCode::BAD_GATEWAY, "The head cannot answer")
}

pub(super) const fn describe_refusal(code: RefusalCode) -> (StatusCode, &'static str) {
    match code {
        RefusalCode::NotFound => (StatusCode::NOT_FOUND, "Not found"),
        RefusalCode::NotAllowed => (StatusCode::FORBIDDEN, "Not allowed"),
        RefusalCode::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "Not possible now"),
        RefusalCode::Limit => (StatusCode::TOO_MANY_REQUESTS, "Too much at once"),
        RefusalCode::Internal | RefusalCode::StorageFailed => {
            (StatusCode::BAD_GATEWAY, "The head has failed")
        }
        RefusalCode::Invalid
        | RefusalCode::Unsatisfiable
        | RefusalCode::Ambiguous
        | RefusalCode::WrongState => (StatusCode::CONFLICT, "Refused"),
    }
}

fn tagged(mut response: Response, tag: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("hx-request"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    response
}

/// The first half of the digest, as text: nobody gains from a collision here.
pub(super) fn short_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A page without a menu that says why a request was refused.
pub(crate) fn failure(status: StatusCode, why: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("Refused");
    let page = Failure { assets: assets::version(), title, why }.render().unwrap_or_default();
    (status, Html(page)).into_response()
}

fn internal_failure() -> Response {
    let text = [(CONTENT_TYPE, "text/plain")];
    (StatusCode::INTERNAL_SERVER_ERROR, text, "The page cannot be rendered.").into_response()
}

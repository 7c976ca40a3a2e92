//! The files that pages load: they are in the binary, and their addresses change with their content.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::answer::{failure, short_digest};

/// Their names, types and bytes. The licenses of those that are not ours lie beside them.
const ASSETS: [(&str, &str, &[u8]); 5] = [
    ("icon.svg", "image/svg+xml", include_bytes!("../../assets/icon.svg")),
    ("htmx.min.js", "text/javascript", include_bytes!("../../assets/htmx.min.js")),
    ("idiomorph-ext.min.js", "text/javascript", include_bytes!("../../assets/idiomorph-ext.min.js")),
    ("page.js", "text/javascript", include_bytes!("../../assets/page.js")),
    ("style.css", "text/css; charset=utf-8", include_bytes!("../../assets/style.css")),
];

static VERSION: LazyLock<String> = LazyLock::new(|| {
    short_digest(&ASSETS.iter().flat_map(|(_, _, bytes)| *bytes).copied().collect::<Vec<_>>())
});

/// The version of all of them, for their addresses.
pub(super) fn version() -> &'static str {
    &VERSION
}

/// The file with this name.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let Some((_, kind, bytes)) = ASSETS.iter().find(|(known, _, _)| *known == name) else {
        return failure(StatusCode::NOT_FOUND, "There is no such file.");
    };
    let headers = [(CONTENT_TYPE, *kind), (CACHE_CONTROL, "private, max-age=86400, immutable")];
    (headers, *bytes).into_response()
}

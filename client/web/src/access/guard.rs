//! The checks of each request, before any route sees it.
//!
//! `Host` has to name this machine, or a name that an attacker points at it would do (DNS rebinding); with a
//! certificate, the names in it do, too. A change has to come from a page of ours: the browser says so in
//! `Sec-Fetch-Site` and `Origin`, which no script of another page can set. Everything but the door and the
//! assets needs a session.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, COOKIE, HeaderName, ORIGIN, TRANSFER_ENCODING};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use cohabit_http::{TlsIdentity, host_of_this_machine};

use crate::routes::failure;
use crate::state::WebState;

/// The name of the cookie. The port is part of it: cookies do not tell ports of one machine apart.
pub(crate) fn cookie_name(port: u16) -> String {
    format!("cohabit-{port}")
}

/// The largest body of a request; ours are empty.
const LONGEST_BODY: u64 = 4_096;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Passes a request on, or refuses it.
pub(crate) async fn check(State(state): State<Arc<WebState>>, request: Request, next: Next) -> Response {
    let refused = checked_host(request.headers(), state.tls.as_deref())
        .and_then(|host| check_origin(request.method(), request.headers(), state.scheme(), host))
        .and_then(|()| check_size(request.headers()))
        .and_then(|()| check_session(&state, &request));
    match refused {
        Ok(()) => next.run(request).await,
        Err((status, why)) => failure(status, why),
    }
}

type Refused = (StatusCode, &'static str);

/// The `Host` of the request, if it names this machine.
fn checked_host<'a>(headers: &'a HeaderMap, tls: Option<&TlsIdentity>) -> Result<&'a str, Refused> {
    host_of_this_machine(headers, tls).ok_or((
        StatusCode::FORBIDDEN,
        "The request is for another host. Open the address that `cohabit web` printed.",
    ))
}

/// Whether a change comes from a page of ours; other requests change nothing.
fn check_origin(method: &Method, headers: &HeaderMap, scheme: &str, host: &str) -> Result<(), Refused> {
    match *method {
        Method::GET | Method::HEAD => return Ok(()),
        Method::POST => {}
        _ => return Err((StatusCode::METHOD_NOT_ALLOWED, "Pages are read with GET and changed with POST.")),
    }
    let is_same_site = headers.get(FETCH_SITE).is_some_and(|site| site == "same-origin");
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.and_then(|origin| origin.strip_prefix(scheme)?.strip_prefix("://"));
    let is_ours = origin == Some(host);
    match is_same_site && is_ours {
        true => Ok(()),
        false => Err((
            StatusCode::FORBIDDEN,
            "The request does not come from a page of `cohabit web`, or the browser does not say so.",
        )),
    }
}

fn check_size(headers: &HeaderMap) -> Result<(), Refused> {
    let length = headers.get(CONTENT_LENGTH).map(|length| length.to_str().ok()?.parse::<u64>().ok());
    let fits = length.is_none_or(|length| length.is_some_and(|length| length <= LONGEST_BODY));
    match fits && !headers.contains_key(TRANSFER_ENCODING) {
        true => Ok(()),
        false => Err((StatusCode::PAYLOAD_TOO_LARGE, "The request has a body that no page sends.")),
    }
}

fn check_session(state: &WebState, request: &Request) -> Result<(), Refused> {
    let path = request.uri().path();
    let is_open = path == "/enter" || path.starts_with("/assets/");
    let session = session_of(request.headers(), state.port);
    match is_open || session.is_some_and(|session| state.entry.has_session(session, Instant::now())) {
        true => Ok(()),
        false => Err((
            StatusCode::FORBIDDEN,
            "This browser has no session. Press Enter in the terminal where `cohabit web` runs, and open the \
             address that it prints.",
        )),
    }
}

/// The value of our cookie.
fn session_of(headers: &HeaderMap, port: u16) -> Option<&str> {
    let name = cookie_name(port);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_needs_our_origin() {
        let headers = |site: &'static str, origin: &'static str| {
            let pairs = [(FETCH_SITE, site), (ORIGIN, origin)];
            pairs.into_iter().filter(|it| !it.1.is_empty()).map(|(k, v)| (k, v.parse().unwrap())).collect()
        };
        let check =
            |headers: HeaderMap| check_origin(&Method::POST, &headers, "http", "127.0.0.1:7071").is_ok();
        assert!(check(headers("same-origin", "http://127.0.0.1:7071")));
        for (site, origin) in [
            ("", "http://127.0.0.1:7071"),
            ("same-origin", ""),
            ("same-site", "http://127.0.0.1:7071"),
            ("cross-site", "http://127.0.0.1:7071"),
            ("none", "http://127.0.0.1:7071"),
            ("same-origin", "http://127.0.0.1:7072"),
            ("same-origin", "http://localhost:7071"),
            ("same-origin", "https://127.0.0.1:7071"),
            ("same-origin", "null"),
        ] {
            assert!(!check(headers(site, origin)), "{site} {origin}");
        }
        let secure = headers("same-origin", "https://127.0.0.1:7071");
        assert!(check_origin(&Method::POST, &secure, "https", "127.0.0.1:7071").is_ok());
        let plain = headers("same-origin", "http://127.0.0.1:7071");
        assert!(check_origin(&Method::POST, &plain, "https", "127.0.0.1:7071").is_err());
        assert!(check_origin(&Method::GET, &HeaderMap::new(), "http", "localhost").is_ok());
        assert_eq!(
            check_origin(&Method::DELETE, &HeaderMap::new(), "http", "localhost").unwrap_err().0,
            StatusCode::METHOD_NOT_ALLOWED
        );
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=b; cohabit-7071=secret; cohabit-8=x".parse().unwrap());
        assert_eq!(session_of(&headers, 7071), Some("secret"));
        assert_eq!(session_of(&headers, 9), None);
    }
}

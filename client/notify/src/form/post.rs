//! Posts over HTTP: one attempt, and what its answer means.
//!
//! Redirections are not followed: they would take secrets elsewhere. Errors never quote the address, which
//! may be a secret.

use std::sync::Arc;
use std::time::Duration;

use cohabit_client::types::shortened;
use cohabit_console::printable_line;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Error};

use super::failure::DeliveryFailure;
use crate::config::ChannelConfig;
use cohabit_settings::FileSecret;

/// What of an answer is read, in bytes.
const MOST_READ: u64 = 2_048;
/// What of an answer is quoted, in bytes.
const MOST_QUOTED: usize = 200;
/// The longest that a receiver may ask to wait.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// A request, without its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpPost {
    /// JSON.
    pub(super) body: String,
    /// Further headers.
    pub(super) headers: Vec<(&'static str, String)>,
    /// Whether it goes to the root of the server instead of the whole address.
    pub(super) to_root: bool,
}

/// Posts to one address.
#[derive(Debug)]
pub(super) struct HttpSender {
    agent: Agent,
    url: FileSecret,
}

impl HttpSender {
    pub(super) fn new(channel: &ChannelConfig, limit: Duration) -> Result<HttpSender, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = RootCerts::Specific(Arc::new(trusted(channel.authorities.as_deref())?));
        let tls = TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
        let config = Agent::config_builder()
            .timeout_global(Some(limit))
            .timeout_connect(Some(limit / 3))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .user_agent(concat!("cohabit/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls);
        Ok(HttpSender { agent: config.build().new_agent(), url: channel.url.clone() })
    }

    /// Tries once.
    pub(super) fn post(&self, post: &HttpPost, key: &str) -> Result<(), DeliveryFailure> {
        let whole = self.url.reveal();
        let url = if post.to_root { root_of(whole) } else { whole.to_owned() };
        let mut request = self.agent.post(&url);
        let fixed = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        let own = post.headers.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in fixed.into_iter().chain(own) {
            request = request.header(name, value);
        }
        let mut answer = request.send(&post.body).map_err(|error| later(reason(&error)))?;
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(());
        }
        let wait = answer.headers().get("retry-after").and_then(|wait| wait.to_str().ok()).and_then(seconds);
        let text = answer.body_mut().with_config().limit(MOST_READ).lossy_utf8(true).read_to_string();
        Err(failure(status, wait, &text.unwrap_or_default()))
    }
}

/// The certificates that the operator gave, or else those of this machine.
fn trusted(authorities: Option<&[u8]>) -> Result<Vec<Certificate<'static>>, String> {
    let own: Vec<Certificate<'static>> = authorities
        .into_iter()
        .flat_map(parse_pem)
        .filter_map(|item| if let Ok(PemItem::Certificate(it)) = item { Some(it) } else { None })
        .collect();
    if !own.is_empty() {
        return Ok(own);
    }
    let found = rustls_native_certs::load_native_certs();
    Ok(found.certs.iter().map(|it| Certificate::from_der(it).to_owned()).collect())
}

/// Everything before the path.
fn root_of(url: &str) -> String {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let end = url[after_scheme..].find('/').map_or(url.len(), |at| after_scheme + at);
    format!("{}/", &url[..end])
}

/// What a status other than success means. A receiver that does not know us, or is busy, may be mended; one
/// that does not like this message would not like it the next time.
fn failure(status: u16, after: Option<Duration>, text: &str) -> DeliveryFailure {
    let quoted = shortened(&printable_line(text.trim()), MOST_QUOTED);
    let said = if quoted.is_empty() { String::new() } else { format!(": {quoted}") };
    let why = match status {
        300..=399 => {
            format!("it answered {status}, a redirection: write the address it leads to in url-file")
        }
        401 | 403 | 404 | 410 => {
            format!("it answered {status}{said}: check the address in url-file, and the secrets")
        }
        _ => format!("it answered {status}{said}"),
    };
    match status {
        400 | 413 | 415 | 422 => DeliveryFailure::Never(why),
        _ => DeliveryFailure::Later { why, after },
    }
}

/// The seconds of `Retry-After`.
fn seconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().map(|secs| Duration::from_secs(secs).min(LONGEST_WAIT))
}

fn later(why: String) -> DeliveryFailure {
    DeliveryFailure::Later { why, after: None }
}

/// The error without the address.
#[expect(clippy::wildcard_enum_match_arm, reason = "the errors of ureq are open-ended")]
fn reason(error: &Error) -> String {
    match error {
        Error::Io(error) => format!("it cannot be reached: {error}"),
        Error::HostNotFound => "its host is not known".to_owned(),
        Error::Timeout(_) => "it gave no answer in time".to_owned(),
        Error::ConnectionFailed => "it cannot be reached".to_owned(),
        Error::Tls(why) => format!("the encryption failed: {why}"),
        Error::Rustls(error) => format!("the encryption failed: {error}"),
        Error::Protocol(_) => "it did not answer in HTTP".to_owned(),
        _ => "the request failed: check the address in url-file".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_refused_is_given_up_and_one_to_a_busy_receiver_tried_again() {
        let (wait, no_wait) = (seconds(" 7 "), seconds("Wed, 21 Oct 2026 07:28:00 GMT"));
        assert_eq!((wait, no_wait), (Some(Duration::from_secs(7)), None));
        assert_eq!(seconds("99999999"), Some(LONGEST_WAIT));
        for status in [400, 413, 415, 422] {
            assert!(matches!(failure(status, None, ""), DeliveryFailure::Never(_)), "{status}");
        }
        for status in [301, 302, 401, 403, 404, 408, 429, 500, 502, 503] {
            let later = failure(status, wait, "");
            assert!(matches!(later, DeliveryFailure::Later { after, .. } if after == wait), "{status}");
        }
    }

    #[test]
    fn an_answer_is_quoted_shortly_and_without_control_characters() {
        let why = failure(500, None, &format!("a\x1b[2J\n{}", "x".repeat(5_000)));
        assert!(why.why().len() < 300 && why.why().contains("a\\u{1b}[2J\\n"), "{}", why.why());
    }

    #[test]
    fn the_root_is_what_comes_before_the_path() {
        assert_eq!(root_of("https://ntfy.sh/topic"), "https://ntfy.sh/");
        assert_eq!(root_of("http://127.0.0.1:80"), "http://127.0.0.1:80/");
    }
}

//! Webhooks: JSON, signed so that the receiver knows who sent it, and when.

use cohabit_client::types::Time;
use ring::hmac;

use super::document::MessageDocument;
use super::post::HttpPost;
use crate::message::Message;
use cohabit_settings::FileSecret;

/// A post with this message. The signature is the HMAC-SHA256 of the time in seconds, a period and the body,
/// so that nobody can send an old message again.
pub(super) fn post(message: &Message, key: Option<&FileSecret>, now: Time) -> HttpPost {
    let body = serde_json::to_string(&MessageDocument::of(message)).unwrap_or_default();
    let seconds = (now.as_micros() / 1_000_000).to_string();
    let signature = key.map(|key| ("Cohabit-Signature", signature(key, &seconds, &body)));
    let headers = [("Cohabit-Timestamp", seconds)].into_iter().chain(signature).collect();
    HttpPost { body, headers, to_root: false }
}

fn signature(key: &FileSecret, seconds: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.reveal().as_bytes());
    let tag = hmac::sign(&key, format!("{seconds}.{body}").as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::message::samples::{at, ended, entry};

    #[test]
    fn the_body_names_the_job_and_what_happened() {
        let post = post(&Message::of(entry(7, ended(12))), None, at(0));
        let body: Value = serde_json::from_str(&post.body).unwrap();
        let whole = [("version", Value::from(1)), ("key", "7".into()), ("event", "fail".into())];
        for (name, value) in whole {
            assert_eq!(body[name], value, "{name}");
        }
        assert_eq!(body["at"], "2026-01-01T00:00:10Z");
        let job = &body["entries"][0]["job"];
        assert_eq!((&job["id"], &job["user"], &job["exit_code"]), (&"12".into(), &"ada".into(), &3.into()));
        assert_eq!(post.headers, [("Cohabit-Timestamp", "1767225600".to_owned())]);
    }

    /// Computed with `printf '%s' '1767225600.{}' | openssl dgst -sha256 -hmac key`.
    #[test]
    fn the_signature_is_an_hmac_of_time_and_body() {
        assert_eq!(
            signature(&FileSecret::of("key"), "1767225600", "{}"),
            "sha256=df344de429b8ee672e1863e0008fdbd0080000536fbccdf0e4f89846acbbe872"
        );
        let message = Message::of(entry(7, ended(12)));
        let signed = |key, now| post(&message, Some(&FileSecret::of(key)), now).headers[1].clone();
        assert_eq!(signed("key", at(0)).0, "Cohabit-Signature");
        assert_ne!(signed("key", at(0)), signed("other", at(0)));
        assert_ne!(signed("key", at(0)), signed("key", at(1)));
    }
}

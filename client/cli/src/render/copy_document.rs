//! The document of `cp` for scripts.

use cohabit_transfer::Received;
use serde::Serialize;

/// `{"files", "links", "bytes", "left_out", "reasons": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct CopyDocument<'a> {
    files: u64,
    links: u64,
    bytes: u64,
    left_out: u64,
    reasons: Vec<LeftOutDocument<'a>>,
}

/// `{"path", "reason"}`
#[derive(Debug, Serialize)]
struct LeftOutDocument<'a> {
    path: &'a str,
    reason: &'a str,
}

impl<'a> From<&'a Received> for CopyDocument<'a> {
    fn from(received: &'a Received) -> CopyDocument<'a> {
        let reasons = received.reasons.iter().map(|(path, reason)| LeftOutDocument { path, reason });
        CopyDocument {
            files: received.files,
            links: received.links,
            bytes: received.bytes,
            left_out: received.skipped,
            reasons: reasons.collect(),
        }
    }
}

//! The document of why a job waits, or how it ended.

use cohabit_client::types::{Explanation, JobEvent, JobId};
use cohabit_console::records::rfc3339;
use serde::Serialize;

/// `{"id", "sentences", "story"}`
#[derive(Debug, Serialize)]
pub struct ExplanationDocument {
    id: JobId,
    sentences: Vec<String>,
    #[serde(rename = "story")]
    history: Vec<JobEventDocument>,
}

#[derive(Debug, Serialize)]
struct JobEventDocument {
    at: String,
    text: String,
}

impl ExplanationDocument {
    /// Of this job.
    pub fn new(id: JobId, explanation: Explanation) -> ExplanationDocument {
        let document = |event: &JobEvent| JobEventDocument { at: rfc3339(event.at), text: event.to_string() };
        ExplanationDocument {
            id,
            sentences: explanation.sentences,
            history: explanation.history.iter().map(document).collect(),
        }
    }
}

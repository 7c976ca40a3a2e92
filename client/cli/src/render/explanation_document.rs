//! The document of `explain`.

use cohabit_client::types::{JobId, NodeState};
use cohabit_documents::explanation::ExplanationDocument;
use serde::Serialize;

use super::error_output::ErrorOutputDocument;

/// An explanation, and where there is any `waiting` and `stderr`.
#[derive(Debug, Serialize)]
pub(crate) struct ExplainedJobDocument {
    #[serde(flatten)]
    pub(crate) explanation: ExplanationDocument,
    /// What waits of the application, if the job is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<WaitsDocument>,
    /// What the job printed last, if it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stderr: Option<ErrorOutputDocument>,
}

/// What waits of an application.
#[derive(Debug, Serialize)]
pub(crate) struct WaitsDocument {
    pub(crate) jobs: Vec<WaitingJobDocument>,
    pub(crate) actors: Vec<WaitingActorDocument>,
    pub(crate) nodes: Vec<SilentNodeDocument>,
    /// Why the coordinator could not be asked for actors.
    pub(crate) problem: Option<String>,
}

/// A child job that waits.
#[derive(Debug, Serialize)]
pub(crate) struct WaitingJobDocument {
    pub(crate) id: JobId,
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// A node of which nothing is heard, with the parts of the application that are, or were, there.
#[derive(Debug, Serialize)]
pub(crate) struct SilentNodeDocument {
    pub(crate) name: String,
    pub(crate) state: NodeState,
    pub(crate) since: String,
    pub(crate) processes: Vec<PlacedProcessDocument>,
}

/// A process of an application on a node.
#[derive(Debug, Serialize)]
pub(crate) struct PlacedProcessDocument {
    pub(crate) job: JobId,
    pub(crate) rank: u32,
    pub(crate) role: String,
    pub(crate) name: String,
}

/// An actor that waits for GPUs of its application, or for a node of which nothing is heard.
#[derive(Debug, Serialize)]
pub(crate) struct WaitingActorDocument {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) reason: String,
}

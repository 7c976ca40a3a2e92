//! Who asks for a change, and for which.

use cohabit_types::{self as types, Bytes, JobId, Span};
use serde::{Deserialize, Serialize};
use serde_with::As;

use super::StoredJobSpec;
use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Principal")]
pub(crate) struct StoredPrincipal {
    user: String,
    #[serde(with = "As::<StoredRole>")]
    role: types::Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Role", rename_all = "lowercase")]
pub(crate) enum StoredRole {
    Worker,
    User,
    Admin,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Request")]
pub(crate) enum StoredRequest {
    Submit(#[serde(with = "As::<Box<StoredSubmit>>")] Box<types::Submit>),
    Change(#[serde(with = "As::<StoredJobChange>")] types::JobChange, Vec<JobId>),
    Drain(String),
    Resume(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Submit")]
pub(crate) struct StoredSubmit {
    #[serde(with = "As::<StoredJobSpec>")]
    spec: types::JobSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    #[serde(with = "As::<Option<StoredEstimate>>", default, skip_serializing_if = "Option::is_none")]
    estimate: Option<types::Estimate>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Estimate")]
pub(crate) struct StoredEstimate {
    iterations: Option<u64>,
    runtime: Option<Span>,
    #[serde(default)]
    gpu_memory: Option<Bytes>,
    basis: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobChange", rename_all = "lowercase")]
pub(crate) enum StoredJobChange {
    Cancel,
    Hold,
    Release,
    Requeue,
    Kill,
    Withdraw,
}

shape_of! {
    StoredPrincipal => types::Principal,
    StoredRole => types::Role,
    StoredRequest => types::Request,
    StoredSubmit => types::Submit,
    StoredEstimate => types::Estimate,
    StoredJobChange => types::JobChange,
}

//! Who asks for a change, and for which.

use cohabit_types::{self as types, Bytes, JobId, Span, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::{As, DeserializeAs, SerializeAs};

use super::{StoredJobSpec, StoredReservationRequest, StoredShareTable};
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
    Viewer,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Request")]
pub(crate) enum StoredRequest {
    Submit(#[serde(with = "As::<Box<StoredSubmit>>")] Box<types::Submit>),
    Change(#[serde(with = "As::<StoredJobChange>")] types::JobChange, Vec<JobId>),
    Update(#[serde(with = "As::<StoredJobSettings>")] types::JobSettings, Vec<JobId>),
    Drain(#[serde(with = "As::<DrainForm>")] types::DrainRequest),
    Resume(String),
    ApplyShares(#[serde(with = "As::<Box<StoredShareTable>>")] Box<types::ShareTable>),
    Reserve(#[serde(with = "As::<Box<StoredReservationRequest>>")] Box<types::ReservationRequest>),
    CancelReservation(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobSettings")]
pub(crate) struct StoredJobSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(with = "As::<Option<StoredTimeLimitSetting>>", default, skip_serializing_if = "Option::is_none")]
    time_limit: Option<types::TimeLimitSetting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retries: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begin: Option<Time>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::TimeLimitSetting", rename_all = "snake_case")]
pub(crate) enum StoredTimeLimitSetting {
    Unlimited,
    Limit(Span),
}

/// A drain as text is the name of the node: so it was before there were reasons and deadlines.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum DrainForm {
    Node(String),
    Detailed {
        node: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Span>,
    },
}

impl SerializeAs<types::DrainRequest> for DrainForm {
    fn serialize_as<S: Serializer>(drain: &types::DrainRequest, serializer: S) -> Result<S::Ok, S::Error> {
        let types::DrainRequest { node, reason, within } = drain.clone();
        match (&reason, within) {
            (None, None) => DrainForm::Node(node).serialize(serializer),
            _ => DrainForm::Detailed { node, reason, within }.serialize(serializer),
        }
    }
}

impl<'de> DeserializeAs<'de, types::DrainRequest> for DrainForm {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<types::DrainRequest, D::Error> {
        Ok(match DrainForm::deserialize(deserializer)? {
            DrainForm::Node(node) => types::DrainRequest::new(node),
            DrainForm::Detailed { node, reason, within } => types::DrainRequest { node, reason, within },
        })
    }
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
    StoredJobSettings => types::JobSettings,
    StoredTimeLimitSetting => types::TimeLimitSetting,
    StoredSubmit => types::Submit,
    StoredEstimate => types::Estimate,
    StoredJobChange => types::JobChange,
}

//! Stored shapes of the types that events and snapshots contain. Formats 1 to 6 share them.
//!
//! Each shape names the fields, variants and defaults of the JSON. Ids, times and amounts ([`Time`],
//! [`Bytes`], ...) have one text form everywhere and are stored as they are; the golden files hold those
//! forms, too.
//!
//! Every shape reads an absent `Option` as `None`. Formats 1 to 5 wrote `null` there; format 6 leaves most
//! of them out, which makes a submission a fifth shorter. Records of the history, which people query, keep
//! `null`.
//!
//! To change a shape, do not edit it: copy it under a new name, use the copy in the newest format, and raise
//! [`FORMAT`](crate::FORMAT). A new optional field with a default is the exception: older journals still
//! decode.
//!
//! [`Time`]: cohabit_types::Time
//! [`Bytes`]: cohabit_types::Bytes

mod checkpoints;
mod config;
mod device;
mod feed;
mod job;
mod job_event;
mod model;
mod node;
mod notify;
mod outcome;
mod record;
mod report;
mod request;
mod reservations;
mod shares;
mod state;
mod sweep;
mod usage;

pub(crate) use checkpoints::{StoredCheckpointResult, StoredCheckpointSource};
pub(crate) use config::StoredConfig;
pub(crate) use device::{
    StoredCondition, StoredDevice, StoredEnforcement, StoredIsolation, StoredLinkBandwidths,
    StoredSharingLimits,
};
pub(crate) use feed::StoredFeedEvent;
pub(crate) use job::{StoredCodeSnapshot, StoredDemand, StoredJobSpec, StoredOutputFiles};
pub(crate) use job_event::StoredJobEvent;
pub(crate) use model::StoredModelDescription;
pub(crate) use node::{StoredHostShare, StoredInventory, StoredPlacement, StoredWorkerKey};
pub(crate) use notify::{StoredFeedKind, StoredNotifyRequest};
pub(crate) use outcome::{StoredOutcome, StoredProgress};
pub(crate) use record::{StoredArraySummary, StoredJobRecord};
pub(crate) use report::StoredReport;
pub(crate) use request::{StoredEstimate, StoredPrincipal, StoredRequest, StoredRole};
pub(crate) use reservations::{StoredReservationBook, StoredReservationRequest, were_never_made};
pub(crate) use shares::{StoredShareBook, StoredShareTable};
pub(crate) use state::{StoredJobState, StoredReasonCode, StoredStopReason};
pub(crate) use sweep::StoredSweep;
pub(crate) use usage::{StoredDeviceUsage, StoredUsageCurve};

//! The common types of Cohabit: ids, time, quantities, job specifications, records, orders and reports.
//!
//! Everything here is plain data with `serde`. This crate reads no clock, opens no file and uses no other
//! crate of the workspace; `clippy.toml` beside its manifest holds it to that. Most of these types travel
//! between processes, where the order of fields and variants is the format: `cohabit-wire` holds their bytes,
//! and its tests fail when a change here changes them. Start reading with `job` and `record`.
#![warn(missing_docs)]

mod amounts;
mod array;
mod bandwidth;
mod company;
mod device;
mod ids;
mod interference;
mod isolation;
mod job;
mod log;
mod model;
mod node;
mod order;
mod outcome;
mod principal;
mod progress;
mod record;
mod reference;
mod report;
mod request;
mod retry;
pub mod shared;
mod state;
mod stop;
mod story;
mod telemetry;
mod time;
mod token;
mod work;

pub use amounts::{Bytes, ParseAmountError, Share, Slowdown};
pub use array::{Array, IndexRange};
pub use bandwidth::{Bandwidth, ParseBandwidthError};
pub use company::{ColocationSlowdown, DryRun, DryRunNeighbor, DryRunPlacement, PredictedSlowdown};
pub use device::{
    ComputeMode, Condition, Device, DeviceKind, DeviceSharing, Enforcement, GpuPeer, GpuProperties, Health,
    Mig, PeerPath, SharingLimits,
};
pub use ids::{
    AttemptId, ClientRequestId, DeviceId, Incarnation, JobId, NodeId, ParseIdError, PlanRequestId, RankId,
    WorkerKey,
};
pub use interference::{ModelChoice, ModelRecord, Models};
pub use isolation::{Isolation, UserIsolation};
pub use job::{Dependency, DependencyKind, JobSpec, LaunchMode};
pub use log::{FollowMode, LogChunk, LogPosition, LogRecord, LogRequest, LogStream};
pub use model::{ModelDescription, ModelFamily, PipelineStage};
pub use node::{
    ComputeLimit, Demand, EnforcementRequirement, GpuRequest, HeldRank, HeldRankPhase, Inventory,
    LinkBandwidths, Placement, RankPlacement, Sharing, Spread,
};
pub use order::{Order, RankRun, Rendezvous, RunOrder, StopReason};
pub use outcome::{Outcome, StartFailure};
pub use principal::{Principal, Role};
pub use progress::{AttemptProgress, Progress};
pub use record::{
    ArraySummary, AttemptRecord, DeviceRecord, JobPrediction, JobRecord, NodeRecord, NodeState, RankRecord,
    TrainingSpec,
};
pub use reference::{JobRef, ParseRefError};
pub use report::Report;
pub use request::{
    ChangeResult, Estimate, Explanation, Filter, JobChange, JobRevision, ListPage, Notice, Refusal,
    RefusalCode, Reply, Request, Submit, SubmitReceipt,
};
pub use retry::RetryPolicy;
pub use state::{JobPhase, JobState, ReasonCode};
pub use stop::{Signal, Stop, WarningSignal};
pub use story::{Cause, JobEvent, JobEventKind};
pub use telemetry::{
    CO_LOCATION_COLUMNS, ColocationSample, DeviceTelemetry, GpuPerformance, GpuReading, SharingStrategy,
};
pub use time::{Span, Time};
pub use token::{IssuedToken, NewToken, TokenRecord};
pub use work::{ActorWork, Command, Entrypoint, FunctionWork};

//! The words of Cohabit: ids, time, resources, job specifications, and the messages between clients, head and
//! workers.
//!
//! Everything here is plain data with `serde`. This crate reads no clock, opens no file and knows no other
//! crate of the workspace; `clippy.toml` beside its manifest holds it to that.
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
pub use company::{Companionship, Consideration, ConsideredNeighbour, ConsideredPlace, PredictedSlowdown};
pub use device::{
    ComputeMode, Condition, Device, DeviceKind, DeviceSharing, Enforcement, GpuFacts, Health, Mig, Peer,
    PeerPath, SharingLimits,
};
pub use ids::{
    AttemptId, ClientKey, DeviceId, Incarnation, JobId, NodeId, ParseIdError, RankId, Ticket, WorkerKey,
};
pub use interference::{ModelChoice, ModelRecord, ModelRequest, Models};
pub use isolation::{Isolation, Users};
pub use job::{Dependency, JobSpec, Launch, When};
pub use log::{AtEnd, LogChunk, LogPosition, LogRecord, LogRequest, LogStream};
pub use model::{Family, ModelDescription, Stage};
pub use node::{
    Compute, Demand, Gpus, HeldRank, Inventory, Limits, Links, Phase, Placement, RankPlacement, Sharing,
    Spread,
};
pub use order::{Order, RankRun, Rendezvous, RunOrder, StopReason};
pub use outcome::{Outcome, StartFailure};
pub use progress::{Progress, ProgressOf};
pub use record::{
    ArraySummary, AttemptRecord, DeviceRecord, JobRecord, NodeRecord, NodeState, Predicted, RankRecord,
    Trained,
};
pub use reference::{JobRef, ParseRefError};
pub use report::Report;
pub use request::{
    Answer, By, Estimate, Filter, JobChange, ListPage, Notice, Query, Refusal, RefusalCode, Reply, Request,
    Role, Submit, Verdict, Watched,
};
pub use retry::Retry;
pub use state::{JobState, Life, ReasonCode};
pub use stop::{Signal, Stop, Warning};
pub use story::{Cause, Chapter, Happening};
pub use telemetry::{
    CO_LOCATION_COLUMNS, DeviceTelemetry, GpuPerformance, GpuReading, Stretch, StretchSharing,
};
pub use time::{Span, Time};
pub use token::{TokenAnswer, TokenRecord, TokenRequest};
pub use work::{ActorWork, Command, FunctionWork, Work};

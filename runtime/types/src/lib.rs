//! The common types of Cohabit: ids, time, quantities, job specifications, records, orders and reports.
//!
//! Everything here is plain data with `serde`. This crate reads no clock, opens no file and uses no other
//! crate of the workspace; `clippy.toml` beside its manifest holds it to that. Most of these types travel
//! between processes, where the order of fields and variants is the format: `cohabit-wire` holds their bytes,
//! and its tests fail when a change here changes them. Start reading with `job` and `record`.
#![warn(missing_docs)]

mod application;
mod array;
mod array_entries;
mod bandwidth;
mod checkpoints;
mod code;
mod colocation;
mod content_hash;
mod copy;
mod counted;
mod device;
mod entrypoint;
mod exec;
mod feed;
mod feed_kind;
mod figures;
mod format_version;
mod forward;
mod head_status;
pub mod hex;
mod host_share;
mod ids;
mod inspection;
mod interference_models;
mod isolation;
mod job;
mod job_history;
mod job_input;
mod job_name;
mod job_ref;
mod job_settings;
mod job_updates;
mod job_weight;
mod log;
mod metric;
mod metric_series;
mod model_description;
mod node;
mod node_drain;
mod notify_request;
mod order;
mod outcome;
mod output_files;
mod principal;
mod private_data;
mod progress;
mod qos;
mod quantities;
mod record;
mod refused_worker;
mod rendezvous;
mod report;
mod request;
mod reservation;
mod retry;
mod share_report;
mod share_table;
pub mod shared;
mod shell_quoting;
mod shortened;
mod span_range;
mod stall;
mod state;
mod stop;
mod sweep;
mod sweep_template;
mod telemetry;
mod time;
mod token;
mod usage;
mod usage_report;

pub use application::{
    ApplicationAccess, ApplicationCredentials, ApplicationPlace, ApplicationRecord, ApplicationRole,
    ApplicationSecret, ApplicationWork, RunnerCount, RunnerRole, RunnerWork,
};
pub use array::{Array, IndexRange};
pub use array_entries::{ENTRY_VARIABLE, LONGEST_ENTRY};
pub use bandwidth::{Bandwidth, ParseBandwidthError};
pub use checkpoints::{
    CHECKPOINT_PIECE_BYTES, CheckpointPiece, CheckpointQuery, CheckpointRequest, CheckpointResult,
    CheckpointSource,
};
pub use code::{CodeRequest, CodeSnapshot, ContentPiece, PIECE_BYTES};
pub use colocation::{ColocationSlowdown, DryRun, DryRunNeighbor, DryRunPlacement, PredictedSlowdown};
pub use content_hash::{ContentHash, ParseHashError};
pub use copy::{
    COPY_LIMIT, COPY_PIECE, CopyDepth, CopyId, CopyPiece, CopyRead, CopyRequest, FileCopyOrder, MOST_COPIES,
};
pub use counted::counted;
pub use device::{
    ComputeMode, Condition, Device, DeviceKind, DeviceSharing, Enforcement, GpuPeer, GpuProperties, Health,
    Mig, PeerPath, SharingLimits,
};
pub use entrypoint::{Command, Entrypoint};
pub use exec::{ExecId, ExecOutput, ExecRead, ExecRequest, MOST_EXECS};
pub use feed::{Feed, FeedCursor, FeedEntry, FeedEvent, FeedGap, FeedJob};
pub use feed_kind::FeedKind;
pub use figures::{DeviceHolder, Figures, GpuTime, Histogram, LiveJobs, NodeFigures, UserFigures};
pub use format_version::{FormatVersion, NewerVersion};
pub use forward::{
    FORWARD_PIECE, ForwardId, ForwardOutput, ForwardPiece, ForwardPurpose, ForwardRead, ForwardRequest,
    MOST_FORWARDS,
};
pub use head_status::{HeadStatus, TokenFileStatus};
pub use host_share::HostShare;
pub use ids::{
    AttemptId, ClientRequestId, DeviceId, Incarnation, JobId, NodeId, ParseIdError, PlanRequestId, RankId,
    WorkerKey,
};
pub use inspection::{
    ActorListing, ActorRecord, ActorStage, ApplicationAnswer, ApplicationOwner, ApplicationQuestion,
    ApplicationTopic, MOST_LISTED, ObjectListing, ObjectLocation, ObjectRecord, ObjectStoreRecord,
    TaskClassRecord, TaskListing, TaskRecord, TaskRunnerRecord, TaskRunnerStage, TaskStatus,
};
pub use interference_models::{ModelChoice, ModelRecord, Models};
pub use isolation::{AccountKey, Isolation, UserIsolation};
pub use job::{CHECKPOINT_JOB, Dependency, DependencyKind, GIVEN_BACK_WITHIN, JobSpec, LaunchMode};
pub use job_history::{Cause, JobEvent, JobEventKind};
pub use job_input::{INPUT_PIECE, InputPiece, JobInput, MOST_INPUT, TerminalSize, Typist};
pub use job_ref::{JobRef, ParseRefError};
pub use job_settings::{JobSettings, TimeLimitSetting};
pub use job_updates::{JobUpdates, UpdateCursor};
pub use log::{FollowMode, LogChunk, LogPosition, LogRecord, LogRequest, LogStream};
pub use metric::MetricValue;
pub use metric_series::{MetricRow, MetricSeries};
pub use model_description::{ModelDescription, ModelFamily, PipelineStage};
pub use node::{
    ComputeLimit, Demand, EnforcementRequirement, GpuRequest, HeldFor, HeldRank, HeldRankPhase, Inventory,
    LinkBandwidths, Placement, RankPlacement, Sharing, Spread,
};
pub use node_drain::{DrainRequest, NodeDrain};
pub use notify_request::{NotifyRequest, check_channel_name};
pub use order::{Order, Predecessor, RankRun, RunOrder, StopReason};
pub use outcome::{Outcome, StartFailure};
pub use output_files::OutputFiles;
pub use principal::{Principal, Role};
pub use private_data::PrivateData;
pub use progress::{AttemptProgress, Progress};
pub use qos::Qos;
pub use quantities::{Bytes, ParseAmountError, Share, Slowdown};
pub use record::{
    ArraySummary, AttemptRecord, DeviceRecord, IdleRecord, JobLabels, JobPrediction, JobRecord, NodeRecord,
    NodeState, RankRecord, TrainingSpec,
};
pub use refused_worker::RefusedWorker;
pub use rendezvous::Rendezvous;
pub use report::Report;
pub use request::{
    ChangeResult, Estimate, Explanation, Filter, JobChange, JobRevision, ListPage, Notice, Refusal,
    RefusalCode, Reply, Request, Submit, SubmitReceipt,
};
pub use reservation::{
    MOST_RESERVATIONS, NodeReservation, ReservationAccess, ReservationRequest, ReservationSet,
    ReservationTerms,
};
pub use retry::RetryPolicy;
pub use share_report::{PartyShare, ProjectShare, ShareReport, UserShare};
pub use share_table::{RunningLimits, ShareProject, ShareTable, UserLimits};
pub use shell_quoting::quoted_command;
pub use shortened::shortened;
pub use span_range::span_range;
pub use stall::{StallAction, StallPolicy};
pub use state::{JobPhase, JobState, ReasonCode};
pub use stop::{Signal, Stop, WarningSignal};
pub use sweep::{AshaRule, EarlyStopping, MedianRule, Sweep, SweepGoal};
pub use sweep_template::{TemplatePart, entry_parameters, fill_template, is_parameter_name, template_parts};
pub use telemetry::{
    CO_LOCATION_COLUMNS, ColocationSample, DeviceTelemetry, GpuPerformance, GpuReading, SharingStrategy,
};
pub use time::{Span, Time};
pub use token::{IssuedToken, NewToken, TokenRecord};
pub use usage::{
    DeviceUsage, IDLE_BELOW, IDLE_STRETCH, IDLE_WARNING, RankUsage, UsageCurve, UsagePoint, UsageRecord,
};
pub use usage_report::{
    UsageAmounts, UsageDay, UsageGrouping, UsageReport, UsageReportRequest, UsageReportRow, UsageSums,
    WaitTimes, WorkAlone,
};

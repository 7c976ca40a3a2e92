//! A whole Cohabit cluster in one process, under virtual time.
//!
//! The production head, worker cores and policies run on machines, a network and clients that are simulated:
//! one thread, no clock, one agenda. [`swarm`] draws clusters, jobs and trouble from seeds and checks from
//! outside that every promise holds; [`run`] lets any [`Scenario`] happen; `evaluate` runs the jobs of a
//! trace through it, fast, and measures how a policy did.
//!
//! ```text
//!  seed ──> draw ──────> Scenario ──> world (agenda) ──> head · workers · policy · machines · clients
//!                           ^           ├─ checks after each start of a rank, at the end ──> Run
//!  trace ─> workload ─> Evaluation      └─ or a row for each job, without checks ──> Evaluated
//! ```

mod alarm;
mod checks;
mod clients;
mod cluster_spec;
mod digest;
mod draw;
#[cfg(feature = "learned")]
mod evaluation;
mod event_queue;
mod failure;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gangs;
mod head;
mod head_hooks;
mod journal;
mod link;
mod machine;
mod machine_spec;
mod node;
mod planted_bug;
mod process;
mod program;
mod random;
mod recorder;
mod reference;
mod run;
mod scenario;
mod sim_event;
mod slowdown_tracker;
mod swarm;
#[cfg(test)]
mod tests;
pub mod trace;
mod wall_clock;
pub mod workload;
mod world;

pub use cluster_spec::{ClusterSpec, ParseClusterError};
pub use cohabit_policy::interference::{GPU_MODELS, GpuModel, Interference, InterferenceContext};
pub use cohabit_policy::{POLICY_NAMES, PolicyParseError, parse_policy};
#[cfg(feature = "learned")]
pub use cohabit_predict::{Accuracy, AccuracyStats, EstimateErrors};
pub use digest::Digest;
pub use draw::Options;
#[cfg(feature = "learned")]
pub use evaluation::{
    DeviceSpan, EstimatorKind, Evaluation, EvaluationError, EvaluationResult, JobResult, Metrics, Observer,
    Series, evaluate,
};
pub use failure::{FailureKind, SimFailure};
pub use machine::{DEFAULT_MAX_SLOWDOWN, Disk, FaultAttribution, Hardware, ObservedMemory};
pub use machine_spec::MachineSpec;
pub use planted_bug::PlantedBug;
pub use program::{MpsAttachment, ProgressReporting, SigtermBehaviour, SimProgram, StartBehaviour};
pub use random::Random;
pub use recorder::TraceDetail;
pub use run::{RunResult, run, run_twice};
pub use scenario::{CheckLevel, ExternalEvent, Scenario, ScenarioSubmission};
pub use swarm::{FailedSeed, SwarmSummary, command, swarm};
pub use wall_clock::ClockStep;
pub use world::RunCounters;

//! Simulates a whole Cohabit cluster in one process, under virtual time.
//!
//! The production head, worker cores and policies run on simulated machines, a simulated network and
//! simulated clients: one thread, no clock, one queue of events. There are three uses:
//!
//! - [`swarm`] draws clusters, jobs and faults from seeds and checks from outside that every invariant holds;
//!   [`run`] runs any [`Scenario`] in this way;
//! - [`run_application`] does the same with the processes of one application;
//! - `evaluate` runs the jobs of a trace, fast and without checks, and measures how a policy performs.
//!
//! ```text
//!  seed ──> draw ──────> Scenario ──> world (queue) ──> head · workers · policy · machines · clients
//!                           ^           ├─ checked after each event and at the end ──> RunResult
//!  trace ─> workload ─> Evaluation      └─ or a result for each job, unchecked ──> EvaluationResult
//! ```
//!
//! Where to start reading: `world/mod.rs` has the event loop. `scenario.rs` and `program.rs` say what can
//! happen, `machine/` is the simulated hardware, `head.rs` and `node.rs` wrap the production cores,
//! `checks.rs` and `reference/` find violations, `trace/` and `workload/` make jobs from traces, and
//! `evaluation/` has the metrics. docs/SIMULATION.md is the manual.

mod alarm;
mod application;
mod archive;
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
mod hostile;
mod impostor;
mod journal;
mod link;
mod machine;
mod machine_spec;
mod node;
mod order_checks;
mod planted_bug;
mod process;
mod program;
mod random;
mod random_agents;
mod reclaim_checks;
mod recorder;
mod reference;
mod run;
mod scenario;
mod share_speed;
mod sim_event;
mod slowdown_tracker;
mod swarm;
#[cfg(test)]
mod tests;
pub mod trace;
mod wall_clock;
pub mod workload;
mod world;

pub use application::{
    ApplicationCounters, ApplicationRun, ApplicationSummary, FailedApplication, application_command,
    run_application,
};
pub use cluster_spec::{ClusterSpec, ParseClusterError};
pub use cohabit_policy::interference::{GPU_MODELS, GpuModel, Interference, InterferenceContext};
pub use cohabit_policy::maifs;
pub use cohabit_policy::{
    JobTraits, POLICY_NAMES, PolicyParseError, SensitivityProfiles, SensitivityTable, parse_policy,
    uses_interference, uses_sensitivity,
};
#[cfg(feature = "learned")]
pub use cohabit_predict::{Accuracy, AccuracyStats, EstimateErrors};
pub use cohabit_scheduler_core::MemoryMisfit;
pub use digest::Digest;
pub use draw::Options;
#[cfg(feature = "learned")]
pub use evaluation::{
    ColocationLearner, DeviceSpan, EstimatorKind, Evaluation, EvaluationError, EvaluationMetrics,
    EvaluationResult, JobBehavior, JobResult, Observer, ParseStopCostError, PeriodMetrics, Series,
    SharingIncentive, StopCost, UserMetrics, evaluate, evaluate_agents, evaluate_learning,
};
pub use failure::{FailureKind, SimFailure};
pub use hostile::{HostileRequest, Nonsense};
pub use impostor::{Claim, Lie};
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

//! The head of a Cohabit cluster as a state machine.
//!
//! All change enters by one door, [`Head::handle`]; everything else only reads. Effects are data that the
//! daemon, or the simulator, carries out in order. The head reads no clock, knows no socket and calls no
//! policy: it asks for a plan and checks the answer.
//!
//! ```text
//!  Event ──> turn ──> submit · change · workers · planning · deadlines ──> lifecycle ──> [Effect]
//!                                                        answer · record · explain · consider <── questions
//! ```

mod alarm;
mod answer;
mod change;
mod check;
mod consider;
mod deadlines;
mod dependencies;
mod door;
mod explain;
mod head;
mod job;
mod lifecycle;
mod node;
mod parts;
mod planning;
mod predicted_memory;
mod queue;
mod record;
mod rendezvous;
mod requests;
mod resolve;
mod runs;
mod satisfiable;
mod sight;
mod submission;
mod submit;
mod trouble;
mod turn;
mod workers;

pub use consider::DryRunJob;
pub use door::{Config, DeadlineKind, Effect, Event};
pub use head::Head;
pub use parts::{SnapshotPart, SnapshotParts};

#[cfg(test)]
mod tests;

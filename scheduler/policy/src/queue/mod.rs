//! Pending jobs in order, and the policies that are an order, a placer and a discipline.
//!
//! Start with `queue_policy.rs`. `pending_queue.rs` keeps jobs in order and in classes, `draft.rs` makes one
//! plan, `discipline.rs` says what happens behind a job that does not fit. `reservation.rs`,
//! `expected_ends.rs`, `fit_tracker.rs` and `unplaceable.rs` are the parts of EASY backfill, which A-SRPT
//! uses too. `virtual_srpt_machine.rs` is the single machine that tells when the turn of each job comes, as
//! fast as all devices together (`capacity.rs`). `pending_reasons.rs` explains why jobs wait.
//! `victim_selection.rs` and `releasable_devices.rs` find which running jobs have to stop for a demand.

pub(crate) mod capacity;
mod discipline;
mod draft;
pub(crate) mod expected_ends;
pub(crate) mod fit_tracker;
mod kept_room;
mod pending_queue;
pub(crate) mod pending_reasons;
mod queue_policy;
mod releasable_devices;
pub(crate) mod reservation;
pub(crate) mod unplaceable;
mod victim_selection;
pub(crate) mod virtual_srpt_machine;
mod waiting_demand;

pub(crate) use discipline::Discipline;
pub(crate) use kept_room::KeptRoom;
pub(crate) use pending_queue::{ClassId, PendingQueue, PriorityKey, QueueEntry, QueuedJob, note_stops};
pub(crate) use queue_policy::{Fifo, JobOrder, QueuePolicy};
pub(crate) use victim_selection::VictimSelection;
pub(crate) use waiting_demand::WaitingDemand;

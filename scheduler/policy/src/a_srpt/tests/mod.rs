//! What A-SRPT promises: scenarios, properties, and the inequalities of its theory on random instances.

pub(crate) mod bounds;
mod delayed_jobs;
mod golden;
pub(crate) mod instances;
mod invariants;
mod options;
mod queue_state;
mod recent_waits;
mod reference;
mod scenarios;
mod theory;

//! What A-SRPT promises: scenarios, properties, and the inequalities of its theory on random instances.

mod delayed_jobs;
mod golden;
mod instances;
mod invariants;
mod options;
mod queue_state;
mod recent_waits;
mod reference;
mod scenarios;
mod theory;
mod virtual_srpt_machine;

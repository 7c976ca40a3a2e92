//! What A-SRPT promises: scenarios, properties, and the inequalities of its theory on random instances.

mod books;
mod golden;
mod hold_outs;
mod instances;
mod invariants;
mod options;
mod recent_waits;
mod reference;
mod scenarios;
mod theory;
mod virtual_machine;

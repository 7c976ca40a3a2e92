//! The golden checks of the specification, and what holds for every observation and all values.

mod golden;
mod graph;
mod instances;
mod joint_q;
mod max_plus;
mod plans;
mod properties;
mod waiting_window;

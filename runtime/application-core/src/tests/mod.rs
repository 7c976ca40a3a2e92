//! Scenarios of each core.

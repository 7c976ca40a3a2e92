//! Objects leave memory when it is full, come back when they are wanted, and wait in order.

mod fetching;
mod model;
mod scenarios;

//! Objects leave memory when it is full, come back when they are wanted, and wait in order.

mod model;
mod scenarios;

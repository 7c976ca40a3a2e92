//! The golden checks of the specification, and what else must hold.

mod attention;
mod determinism;
mod exploration;
mod game;
mod gradients;
mod inference;
mod instances;
mod order;
mod single;
mod stored;
mod variants;

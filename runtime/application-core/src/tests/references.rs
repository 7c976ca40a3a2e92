//! References to objects: how they travel, what waits for them, and what is left of them.

mod dependents;
mod directory;
mod kit;
mod model;
mod sharing;

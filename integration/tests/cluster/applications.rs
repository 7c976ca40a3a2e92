//! Applications: Rust programs whose actors and tasks run in processes of a real cluster.

mod actors;
mod gangs;
mod inspect;
mod launch;
mod nodes;
mod objects;
mod placement;
mod programs;
mod tasks;

//! Scenarios of each core, with their effects as whole lists.

mod call_queue;
mod coordinator;
mod deadlocks;
mod descriptions;
mod fetches;
mod formats;
mod gangs;
mod gate;
mod holders;
mod kit;
mod locality;
mod member;
mod nodes;
mod object_store;
mod recursion;
mod references;
mod remakes;
mod runner_yields;
mod session;
mod stream_ends;
mod streams;
mod task_calls;
mod task_gate;
mod task_runners;

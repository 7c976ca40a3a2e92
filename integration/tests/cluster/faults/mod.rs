//! Faults: whatever dies, no job is lost and none runs twice.
//!
//! ```text
//! daemons      heads and workers that die or are stopped while jobs run
//! submits      a head that dies as it acknowledges
//! swarms       many short jobs while daemons die
//! upgrades     the next release takes over from the last
//! programs     workers whose program is removed or may not be executed
//! executors    executors that die, and processes that a rank leaves behind
//! frozen       executors that do not act
//! journal      damage to the journal of a head
//! links        links that break for shorter and for longer than ranks go on without the head
//! clocks       clocks that step
//! gangs        one part of a gang fails
//! ```

mod clocks;
mod daemons;
mod executors;
mod frozen;
mod gangs;
mod journal;
mod links;
mod programs;
mod submits;
mod swarms;
mod upgrades;

//! The guarantees of the runtime, in paused time: the clock jumps to the next timer whenever all tasks wait.

mod ask;
mod blocking;
mod mailbox;
mod restart_policy;
mod shutdown;
mod supervision;
mod test_kit;
mod timers;

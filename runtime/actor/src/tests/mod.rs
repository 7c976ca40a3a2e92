//! What the runtime promises, in paused time: the clock jumps to the next timer whenever all tasks wait.

mod ask;
mod kit;
mod mailbox;
mod registry;
mod remote;
mod restart;
mod shutdown;
mod supervision;
mod timers;

//! A process of an application that runs the user's code: its state, and its connections.
//!
//! ```text
//! call, builder, handle, ... ──▶ MemberProcess ──▶ MemberState: the core, its sessions, who waits for what
//!                                     │  ▲                       (calls, references, tasks: the parts of it)
//!                           dialing, accepting: connections, whose frames go to the state
//! ```
//!
//! The state is behind a lock, for handles may be used on any thread. Nothing of the user's runs under it:
//! values are encoded before and decoded after, and what is dropped is dropped after it is free again.

mod accepting;
mod arrived;
mod calls;
mod dialing;
mod fetching;
mod handle_replies;
mod hold;
mod item_sender;
mod member_process;
mod member_state;
mod peer;
mod reference_table;
mod references;
mod running_task;
mod task_table;
mod tasks;

pub(crate) use accepting::{CalleeSockets, accept_callers};
pub(crate) use arrived::ArrivedArguments;
pub(crate) use calls::{Answer, OutgoingCall, ReferenceTerms, SentCall, StartedCall, StreamItem, WhenFull};
pub(crate) use dialing::{Dialer, keep_coordinator};
pub(crate) use fetching::{FetchedValue, FetchedValues};
pub(crate) use hold::{CarriedHandles, Hold};
pub(crate) use item_sender::ItemSender;
pub(crate) use member_process::MemberProcess;
pub(crate) use member_state::{HostWork, Outlets, ProcessEvent};
pub(crate) use reference_table::CallLimit;
pub use running_task::cancelled;
pub(crate) use running_task::{CalleeKind, RunningTask, UnendedCall};
pub(crate) use task_table::TaskStart;

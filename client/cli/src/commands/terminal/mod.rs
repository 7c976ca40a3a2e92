//! The terminal of this process, connected with that of a job: what the job prints is shown, and what the
//! person types is sent. `shell`, `run --pty`, `attach` and `exec --pty` do so.

mod end_signals;
mod escape;
mod key_queue;
mod own_terminal;
mod owner;
mod screen_modes;
mod session;
mod typing;

pub(super) use end_signals::EndSignals;
pub(super) use own_terminal::{check_terminal, own_size, terminal_variables};
pub(super) use owner::{TerminalOwner, random_number, read_present_exec};
pub(super) use session::{TerminalEnd, connect_terminal};

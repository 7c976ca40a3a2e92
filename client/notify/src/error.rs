//! Why messages cannot be sent at all. A channel that fails for a while is no error: it is tried again.

use std::io;
use std::path::PathBuf;

/// Why messages cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// A file that the operator wrote cannot be used.
    #[error("{}{}: {what}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Config {
        /// The file.
        path: PathBuf,
        /// The line, if the error is on one.
        line: Option<usize>,
        /// What is wrong, and what to do.
        what: String,
    },
    /// The state file cannot be read or written.
    #[error("cannot use the state file {}: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Two programs with one state file would tell everything twice.
    #[error("another `cohabit notify` uses the state file {}: stop it, or give this one another `state`", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is no such channel.
    #[error("there is no channel '{name}': {known}")]
    NoSuchChannel {
        /// The name that was given.
        name: String,
        /// The nearest name, or all.
        known: String,
    },
    /// The test message was not delivered.
    #[error("the channel '{channel}' did not take the test message: {why}")]
    NotDelivered {
        /// The channel.
        channel: String,
        /// Why not.
        why: String,
    },
}

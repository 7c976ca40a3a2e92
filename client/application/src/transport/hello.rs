//! What a process says first on a connection that it dialed.

use cohabit_application_core::SessionHello;
use cohabit_types::{ApplicationSecret, RunnerRole};
use serde::{Deserialize, Serialize};

/// The first frame of a connection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MemberHello {
    /// That of the application.
    pub(crate) secret: ApplicationSecret,
    /// What the connection is for.
    pub(crate) purpose: HelloPurpose,
    /// Who dials whom.
    pub(crate) hello: SessionHello,
}

/// Which session a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HelloPurpose {
    /// That of a process of this role with its coordinator.
    Coordinator(RunnerRole),
    /// That of a caller with the process of an actor.
    Calls,
}

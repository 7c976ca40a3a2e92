//! What a process says first on a connection that it dialed.

use cohabit_application_core::SessionHello;
use cohabit_types::{ApplicationSecret, AttemptId, RunnerRole};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What any first frame has to show.
pub(crate) trait ConnectionHello: Serialize + DeserializeOwned + 'static {
    /// That of the application.
    fn secret(&self) -> &ApplicationSecret;

    /// Who is to accept the connection.
    fn to(&self) -> AttemptId;
}

/// The first frame of a connection that carries a session.
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

/// The first frame of a connection with the store of a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoreHello {
    /// That of the application.
    pub(crate) secret: ApplicationSecret,
    /// Who dials.
    pub(crate) from: AttemptId,
    /// The process that has the store.
    pub(crate) to: AttemptId,
}

impl ConnectionHello for MemberHello {
    fn secret(&self) -> &ApplicationSecret {
        &self.secret
    }

    fn to(&self) -> AttemptId {
        self.hello.to
    }
}

impl ConnectionHello for StoreHello {
    fn secret(&self) -> &ApplicationSecret {
        &self.secret
    }

    fn to(&self) -> AttemptId {
        self.to
    }
}

//! What a process says first on a connection that it dialed.

use cohabit_application_core::SessionHello;
use cohabit_types::{ApplicationSecret, RankId, RunnerRole};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What any first frame has to show.
pub(crate) trait ConnectionHello: Serialize + DeserializeOwned + 'static {
    /// That of the application.
    fn secret(&self) -> &ApplicationSecret;

    /// Who is to accept the connection; none if it does not matter which process of the application does.
    fn to(&self) -> Option<RankId>;
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HelloPurpose {
    /// That of a process with its coordinator.
    Coordinator {
        /// What it runs.
        role: RunnerRole,
        /// The name of its node.
        node: String,
    },
    /// That of a caller with the process of an actor.
    Calls,
}

/// The first frame of a connection that hands a connection from another node over to its process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HandOverHello {
    /// That of the application.
    pub(crate) secret: ApplicationSecret,
    /// The process that it is for.
    pub(crate) to: RankId,
}

/// The first frame of a connection with the store of a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoreHello {
    /// That of the application.
    pub(crate) secret: ApplicationSecret,
    /// Who dials.
    pub(crate) from: RankId,
    /// The process that has the store.
    pub(crate) to: RankId,
}

impl ConnectionHello for MemberHello {
    fn secret(&self) -> &ApplicationSecret {
        &self.secret
    }

    fn to(&self) -> Option<RankId> {
        Some(self.hello.to)
    }
}

impl ConnectionHello for HandOverHello {
    fn secret(&self) -> &ApplicationSecret {
        &self.secret
    }

    fn to(&self) -> Option<RankId> {
        Some(self.to)
    }
}

impl ConnectionHello for StoreHello {
    fn secret(&self) -> &ApplicationSecret {
        &self.secret
    }

    fn to(&self) -> Option<RankId> {
        Some(self.to)
    }
}

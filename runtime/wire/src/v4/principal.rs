//! Users and roles of protocol 4. Frozen: not a field may change.

use cohabit_types as types;
use serde::{Deserialize, Serialize};

/// The user on whose behalf something is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The token's name.
    pub user: String,
    /// The token's role.
    pub role: Role,
    /// The account as which the user's jobs run, where it is not named like the user.
    #[serde(default)]
    pub account: Option<String>,
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Join as a worker; nothing else.
    Worker,
    /// Submit jobs and change one's own.
    User,
    /// Everything.
    Admin,
}

impl From<types::Principal> for Principal {
    fn from(by: types::Principal) -> Principal {
        let types::Principal { user, role, account } = by;
        Principal { user, role: role.into(), account }
    }
}

impl From<Principal> for types::Principal {
    fn from(by: Principal) -> types::Principal {
        let Principal { user, role, account } = by;
        types::Principal { user, role: role.into(), account }
    }
}

impl From<types::Role> for Role {
    fn from(role: types::Role) -> Role {
        match role {
            types::Role::Worker => Role::Worker,
            // Of all that the peer knows, a user is nearest: it is told so to read what a viewer may read.
            // The head goes by the role of the token, never by what it told, and refuses everything else.
            types::Role::User | types::Role::Viewer => Role::User,
            types::Role::Admin => Role::Admin,
        }
    }
}

impl From<Role> for types::Role {
    fn from(role: Role) -> types::Role {
        match role {
            Role::Worker => types::Role::Worker,
            Role::User => types::Role::User,
            Role::Admin => types::Role::Admin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_is_a_user_for_peers_of_protocol_4_and_all_others_are_what_they_are() {
        for role in [types::Role::Worker, types::Role::User, types::Role::Admin] {
            let by =
                types::Principal { account: Some("lovelace".into()), ..types::Principal::new("ada", role) };
            assert_eq!(types::Principal::from(Principal::from(by.clone())), by);
        }
        assert_eq!(Principal::from(types::Principal::new("wall", types::Role::Viewer)).role, Role::User);
    }
}

//! The first tokens of a new cluster: one for its operator and one for its workers, in files with mode 0600.

use std::path::Path;

use cohabit_net::TokenStore;
use cohabit_types::Role;
use nix::unistd::{User, geteuid};

use crate::HeadError;
use crate::clock::wall_clock;
use crate::state_dir::StateDir;

/// The name of the first worker token.
const WORKERS: &str = "workers";

/// Creates the missing tokens of a cluster that has no journal yet. Afterwards admins create and revoke
/// tokens.
pub(super) fn write_tokens(state: &StateDir, tokens: &TokenStore) -> Result<(), HeadError> {
    if state.journal().exists() {
        return Ok(());
    }
    write(tokens, &operator(), Role::Admin, &state.admin_token())?;
    write(tokens, WORKERS, Role::Worker, &state.worker_token())
}

fn write(tokens: &TokenStore, name: &str, role: Role, path: &Path) -> Result<(), HeadError> {
    if tokens.list().iter().any(|token| token.name == name) {
        if path.exists() {
            return Ok(());
        }
        // An earlier first start was interrupted before it wrote the secret, so nobody has it.
        tokens.revoke(name).map_err(HeadError::Token)?;
    }
    let token = tokens.create(name, role, None, wall_clock()).map_err(HeadError::Token)?;
    Ok(token.write_file(path)?)
}

/// The account that runs the head; its jobs show this name as their user.
fn operator() -> String {
    let user = User::from_uid(geteuid()).ok().flatten();
    let fits = |name: &String| {
        name != WORKERS && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c))
    };
    user.map(|user| user.name).filter(fits).unwrap_or_else(|| "admin".to_owned())
}

//! Tokens, for admins. The store waits for the disk, so it is asked on a blocking thread.

use cohabit_net::{TokenStore, TokenStoreError};
use cohabit_types::{IssuedToken, NewToken, Principal, Refusal, RefusalCode, Role, TokenRecord};
use tokio::task::spawn_blocking;

use crate::clock::wall_clock;

/// Makes a token.
pub(super) async fn create(
    by: &Principal,
    tokens: TokenStore,
    new: NewToken,
) -> Result<IssuedToken, Refusal> {
    check_admin(by)?;
    let NewToken { name, role, account, expires_in } = new;
    tracing::info!(admin = by.user, name, %role, "token create");
    on_disk(move || tokens.create_for(account.as_deref(), &name, role, expires_in, wall_clock()))
        .await
        .map(|token| IssuedToken { text: token.expose() })
}

/// All tokens, without secrets.
pub(super) fn list(by: &Principal, tokens: &TokenStore) -> Result<Vec<TokenRecord>, Refusal> {
    check_admin(by)?;
    Ok(tokens.list())
}

/// Revokes a token.
pub(super) async fn revoke(by: &Principal, tokens: TokenStore, name: String) -> Result<(), Refusal> {
    check_admin(by)?;
    tracing::info!(admin = by.user, name, "token revoke");
    on_disk(move || tokens.revoke(&name)).await
}

fn check_admin(by: &Principal) -> Result<(), Refusal> {
    if by.role == Role::Admin {
        return Ok(());
    }
    let message = format!(
        "only an admin token can manage tokens, and the token of {} has the role {}",
        by.user, by.role
    );
    Err(Refusal::new(RefusalCode::NotAllowed, message))
}

async fn on_disk<T: Send + 'static>(
    change: impl FnOnce() -> Result<T, TokenStoreError> + Send + 'static,
) -> Result<T, Refusal> {
    let changed = spawn_blocking(change).await;
    changed.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))?.map_err(Refusal::from)
}

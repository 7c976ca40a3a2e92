//! Tokens, for admins. The store waits for the disk, so it is asked on a blocking thread.

use cohabit_actor::blocking;
use cohabit_net::TokenStore;
use cohabit_types::{IssuedToken, NewToken, Principal, Refusal, RefusalCode, Role, TokenRecord};

use crate::clock::wall_clock;

/// Makes a token.
pub(super) async fn create(
    by: &Principal,
    tokens: TokenStore,
    new: NewToken,
) -> Result<IssuedToken, Refusal> {
    check_admin(by)?;
    tracing::info!(admin = by.user, name = new.name, role = %new.role, "token create");
    let create = move || tokens.create_for(&new, wall_clock());
    Ok(IssuedToken { text: blocking(create).await?.expose() })
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
    Ok(blocking(move || tokens.revoke(&name)).await?)
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

//! Tokens, for admins, and one's own for everybody. The store waits for the disk, so it is asked on a
//! blocking thread.

use cohabit_actor::blocking;
use cohabit_net::TokenStore;
use cohabit_types::{IssuedToken, NewToken, Principal, Refusal, RefusalCode, Role, Span, TokenRecord};

use super::permission::check_admin;
use crate::clock::wall_clock;

/// What is asked of an admin here.
const MANAGE: &str = "manage tokens";

/// Makes a token. One for a user or a viewer expires after this lifetime, unless the request says otherwise.
pub(super) async fn create(
    by: &Principal,
    tokens: TokenStore,
    user_lifetime: Option<Span>,
    new: NewToken,
) -> Result<IssuedToken, Refusal> {
    check_admin(by, MANAGE)?;
    let new = NewToken { expires_in: lifetime(&new, user_lifetime), ..new };
    tracing::info!(admin = by.user, name = new.name, role = %new.role, "token create");
    let create = move || tokens.create_for(&new, wall_clock());
    Ok(IssuedToken { text: blocking(create).await?.expose() })
}

/// How long the token is good for; none if it does not expire. People leave, and their tokens are forgotten:
/// those of users and viewers expire by default. Workers and admins would be locked out in the midst of their
/// work.
fn lifetime(new: &NewToken, user_lifetime: Option<Span>) -> Option<Span> {
    match (new.expires_in, new.role) {
        (Some(NewToken::FOREVER), _) => None,
        (Some(stated), _) => Some(stated),
        (None, Role::User | Role::Viewer) => user_lifetime,
        (None, Role::Worker | Role::Admin) => None,
    }
}

/// The token of this client, without its secret.
pub(super) fn own(by: &Principal, tokens: &TokenStore) -> Result<TokenRecord, Refusal> {
    let own = tokens.list().into_iter().find(|token| token.name == by.user);
    own.ok_or_else(|| Refusal::new(RefusalCode::NotFound, format!("the token of {} was revoked", by.user)))
}

/// All tokens, without secrets.
pub(super) fn list(by: &Principal, tokens: &TokenStore) -> Result<Vec<TokenRecord>, Refusal> {
    check_admin(by, MANAGE)?;
    Ok(tokens.list())
}

/// Revokes a token.
pub(super) async fn revoke(by: &Principal, tokens: TokenStore, name: String) -> Result<(), Refusal> {
    check_admin(by, MANAGE)?;
    tracing::info!(admin = by.user, name, "token revoke");
    Ok(blocking(move || tokens.revoke(&name)).await?)
}

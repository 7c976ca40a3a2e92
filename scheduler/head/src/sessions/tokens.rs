//! Tokens, for admins: the store waits for the disk, so it is asked where that is allowed.

use cohabit_net::TokenStore;
use cohabit_types::{Principal, Refusal, RefusalCode, Role, TokenAnswer, TokenRequest};
use tokio::task::spawn_blocking;

use crate::clock::wall_clock;

/// Answers an admin; refuses everybody else.
pub(super) async fn answer(
    by: &Principal,
    tokens: TokenStore,
    request: TokenRequest,
) -> Result<TokenAnswer, Refusal> {
    if by.role != Role::Admin {
        let message =
            format!("only an admin's token may manage tokens, and {}'s is a {}'s", by.user, by.role);
        return Err(Refusal::new(RefusalCode::NotAllowed, message));
    }
    tracing::info!(admin = by.user, ?request, "tokens");
    let asked = spawn_blocking(move || perform(&tokens, request)).await;
    asked.unwrap_or_else(|error| Err(Refusal::new(RefusalCode::Internal, error.to_string())))
}

fn perform(tokens: &TokenStore, request: TokenRequest) -> Result<TokenAnswer, Refusal> {
    match request {
        TokenRequest::Create { name, role, account, expires_in } => {
            let token = tokens.create_for(account.as_deref(), &name, role, expires_in, wall_clock())?;
            Ok(TokenAnswer::Created(token.expose()))
        }
        TokenRequest::List => Ok(TokenAnswer::Listed(tokens.list())),
        TokenRequest::Revoke(name) => {
            tokens.revoke(&name)?;
            Ok(TokenAnswer::Revoked)
        }
    }
}

//! What only admins may ask that the core does not know of: tokens, credentials, the setup of the head.

use cohabit_types::{Principal, Refusal, RefusalCode, Role};

/// Refuses anybody but an admin; `what` follows "can".
pub(super) fn check_admin(by: &Principal, what: &str) -> Result<(), Refusal> {
    if by.role == Role::Admin {
        return Ok(());
    }
    let message =
        format!("only an admin token can {what}, and the token of {} has the role {}", by.user, by.role);
    Err(Refusal::new(RefusalCode::NotAllowed, message))
}

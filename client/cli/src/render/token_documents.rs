//! Documents of tokens, without their secrets.

use cohabit_client::types::TokenRecord;
use serde::Serialize;

use super::rfc3339;

/// `{"tokens": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct TokenListDocument {
    pub(crate) tokens: Vec<TokenDocument>,
}

/// A token without its secret.
#[derive(Debug, Serialize)]
pub(crate) struct TokenDocument {
    name: String,
    role: String,
    account: Option<String>,
    node: Option<String>,
    created_at: String,
    expires_at: Option<String>,
}

impl From<&TokenRecord> for TokenDocument {
    fn from(token: &TokenRecord) -> TokenDocument {
        TokenDocument {
            name: token.name.clone(),
            role: token.role.to_string(),
            account: token.runs_as().map(str::to_owned),
            node: token.node.clone(),
            created_at: rfc3339(token.created_at),
            expires_at: token.expires_at.map(rfc3339),
        }
    }
}

//! Warnings about tokens that expire soon.

use std::io::{self, IsTerminal as _};

use cohabit_client::Client;
use cohabit_client::types::{Role, Span, Time, TokenRecord};
use cohabit_console::output;

use crate::clock::now;

/// Warns the person at the terminal if the token of this client expires soon. Programs are not bothered: they
/// would have to tell the warning from an error.
pub(crate) async fn warn_of_own_token(client: &Client) {
    if !io::stderr().is_terminal() {
        return;
    }
    // The command itself says what is wrong with the link.
    let Ok(token) = client.own_token().await else { return };
    if let Some(left) = token.ends_soon(now()) {
        output::print_message(&format!("warning: {}", own_token_warning(&token, left)));
    }
}

/// Warns an admin of other tokens that expire soon.
pub(crate) async fn warn_of_other_tokens(client: &Client) {
    let Ok(accepted) = client.accepted().await else { return };
    if accepted.by.role != Role::Admin {
        return;
    }
    let Ok(tokens) = client.tokens().await else { return };
    let others: Vec<TokenRecord> = tokens.into_iter().filter(|it| it.name != accepted.by.user).collect();
    if let Some(warning) = ending_tokens(&others, now()) {
        output::print_message(&format!("warning: {warning}; see `cohabit token list`"));
    }
}

/// What its user should know of a token that ends after this time.
pub(crate) fn own_token_warning(token: &TokenRecord, left: Span) -> String {
    format!("your token '{}' expires in {left}: ask an admin for a new one", token.name)
}

/// The tokens that expire soon; nothing of those that have expired, which do no harm.
pub(crate) fn ending_tokens(tokens: &[TokenRecord], now: Time) -> Option<String> {
    let ending = tokens.iter().filter_map(|token| Some((token, token.ends_soon(now)?)));
    let ending = ending.filter(|(_, left)| *left > Span::ZERO);
    let named: Vec<String> = ending.map(|(token, left)| format!("'{}' in {left}", token.name)).collect();
    (!named.is_empty()).then(|| format!("tokens expire soon: {}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::{at, tokens};

    #[test]
    fn tokens_are_named_in_their_last_month_and_no_longer() {
        let day = 86_400;
        assert_eq!(ending_tokens(&tokens(), at(0)).unwrap(), "tokens expire soon: 'ada' in 30 d 0 h");
        assert_eq!(ending_tokens(&tokens(), at(30 * day)), None);
        let later = |token: TokenRecord| TokenRecord { expires_at: Some(at(62 * day)), ..token };
        assert_eq!(ending_tokens(&tokens().into_iter().map(later).collect::<Vec<_>>(), at(31 * day)), None);
    }
}

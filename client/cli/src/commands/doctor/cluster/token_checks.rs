//! Tokens: whether they end, and whom they admit.

use cohabit_client::types::{Role, Span, Time, TokenRecord};

use super::super::findings::{Finding, listed};
use crate::token_expiry::ending_tokens;

const LASTING: &str = "lasting tokens";
const ENDING: &str = "ending tokens";
const WORKERS: &str = "worker tokens";

pub(super) fn check(tokens: &[TokenRecord], now: Time) -> Vec<Finding> {
    let is_valid = |token: &&TokenRecord| token.ends_soon(now) != Some(Span::ZERO);
    let valid: Vec<TokenRecord> = tokens.iter().filter(is_valid).cloned().collect();
    vec![lasting(&valid), ending(&valid, now), workers(&valid)]
}

/// Tokens of people who left work on until somebody remembers them.
fn lasting(tokens: &[TokenRecord]) -> Finding {
    let belongs_to_a_person = |role| match role {
        Role::User | Role::Viewer => true,
        Role::Worker | Role::Admin => false,
    };
    let lasting = tokens.iter().filter(|token| belongs_to_a_person(token.role) && token.expires_at.is_none());
    let names = listed(lasting.map(|token| token.name.as_str()));
    match names.is_empty() {
        true => Finding::ok(LASTING, "every token of a user or viewer expires"),
        false => Finding::warning(
            LASTING,
            format!("these tokens of users and viewers never expire: {names}"),
            "revoke those that nobody needs, and create others with --expires",
        ),
    }
}

fn ending(tokens: &[TokenRecord], now: Time) -> Finding {
    match ending_tokens(tokens, now) {
        None => Finding::ok(ENDING, "no token expires within 30 days"),
        Some(named) => {
            Finding::warning(ENDING, named, "create new tokens before, with `cohabit token create`")
        }
    }
}

/// A worker is trusted with the jobs and the environments that it gets.
fn workers(tokens: &[TokenRecord]) -> Finding {
    let of_any_node = tokens.iter().filter(|token| token.role == Role::Worker && token.node.is_none());
    let names = listed(of_any_node.map(|token| token.name.as_str()));
    match names.is_empty() {
        true => Finding::ok(WORKERS, "every token of a worker is for one node"),
        false => Finding::warning(
            WORKERS,
            format!("these tokens admit any machine as a worker: {names}"),
            "give each worker a token of its own (`cohabit token create --role worker --node NAME`), then revoke these",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::findings::Diagnosis;
    use super::*;
    use crate::render::samples::{at, tokens};

    #[test]
    fn tokens_that_last_or_end_or_admit_workers_are_named() {
        let day = 86_400;
        let mut all = tokens();
        all.push(TokenRecord { name: "bob".into(), expires_at: None, ..all[1].clone() });
        all.push(TokenRecord { name: "workers".into(), role: Role::Worker, ..all[0].clone() });
        let node = Some("gpu1".to_owned());
        all.push(TokenRecord { name: "gpu1".into(), role: Role::Worker, node, ..all[0].clone() });
        let found = check(&all, at(5 * day));
        assert!(found.iter().all(|finding| finding.status == Diagnosis::Warning), "{found:?}");
        for (finding, named) in found.iter().zip([": bob", "'ada' in 25 d 0 h", ": workers"]) {
            assert!(finding.observed.ends_with(named), "{}", finding.observed);
        }
    }

    #[test]
    fn tokens_that_have_expired_do_not_count() {
        let day = 86_400;
        let found = check(&tokens(), at(31 * day));
        assert!(found.iter().all(|finding| finding.status == Diagnosis::Ok), "{found:?}");
    }
}

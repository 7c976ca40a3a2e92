//! What is said to somebody who asked for a policy that there is not: what was wrong, and what would
//! be right.
//!
//! It never guesses: the nearest name is only named.

/// A text that means no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyParseError {
    /// No policy has this name.
    #[error("there is no policy '{written}': {instead}")]
    Name {
        /// As it was written.
        written: String,
        /// What to write.
        instead: String,
    },
    /// What follows the colon is no parameter.
    #[error("'{written}' is no parameter of the policy {policy}: write {policy}:key=value,key=value")]
    Syntax {
        /// The policy.
        policy: String,
        /// As it was written.
        written: String,
    },
    /// The policy has no such parameter.
    #[error("the policy {policy} takes no '{key}': {instead}")]
    Key {
        /// The policy.
        policy: String,
        /// As it was written.
        key: String,
        /// What to write.
        instead: String,
    },
    /// A parameter has a value that is not allowed.
    #[error("the policy {policy} cannot be made: {why}")]
    Value {
        /// The policy.
        policy: String,
        /// Which parameter, and what is allowed.
        why: String,
    },
}

impl PolicyParseError {
    pub(super) fn name(written: &str, known: &[&str]) -> PolicyParseError {
        PolicyParseError::Name { written: written.to_owned(), instead: instead(written, known) }
    }

    pub(super) fn key(policy: &str, key: &str, known: &[&str]) -> PolicyParseError {
        let instead = match known {
            [] => "it takes no parameters".to_owned(),
            known => instead(key, known),
        };
        PolicyParseError::Key { policy: policy.to_owned(), key: key.to_owned(), instead }
    }
}

/// So much alike, by Jaro and Winkler, that it may have been meant.
const ALIKE: f64 = 0.75;

/// The most similar ones, if any are, and all that there are.
fn instead(written: &str, known: &[&str]) -> String {
    let mut alike: Vec<(f64, &str)> = known
        .iter()
        .map(|name| (strsim::jaro_winkler(written, name), *name))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .collect();
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let all = known.join(", ");
    let nearest: Vec<&str> = alike.into_iter().take(2).map(|(_, name)| name).collect();
    match nearest.is_empty() {
        true => format!("use one of {all}"),
        false => format!("perhaps {} is meant; use one of {all}", nearest.join(" or ")),
    }
}

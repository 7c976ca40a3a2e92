//! The errors for a policy that cannot be made from a text: what is wrong, and what would be right.
//!
//! The nearest name is suggested, never assumed.

/// A text that stands for no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyParseError {
    /// No policy has this name.
    #[error("there is no policy '{written}': {instead}")]
    Name {
        /// As written.
        written: String,
        /// What to write.
        instead: String,
    },
    /// The text after the colon is no parameter.
    #[error("'{written}' is not a parameter of the policy {policy}: write {policy}:key=value,key=value")]
    Syntax {
        /// The policy.
        policy: String,
        /// As written.
        written: String,
    },
    /// The policy has no such parameter.
    #[error("the policy {policy} has no parameter '{key}': {instead}")]
    Key {
        /// The policy.
        policy: String,
        /// As written.
        key: String,
        /// What to write.
        instead: String,
    },
    /// A parameter has a value that is not allowed.
    #[error("the policy {policy} has a wrong parameter: {why}")]
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
        PolicyParseError::Key { policy: policy.to_owned(), key: key.to_owned(), instead: instead(key, known) }
    }
}

/// The Jaro-Winkler similarity from which a name is suggested.
const ALIKE: f64 = 0.75;

/// Suggests the most similar names, if there are any, and lists all.
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
        false => format!("did you mean {}? Use one of {all}", nearest.join(" or ")),
    }
}

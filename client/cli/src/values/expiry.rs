//! Parses when a token expires: a duration, or `never`.

use cohabit_client::types::{NewToken, Span};

use super::parse_duration;

/// Parses the lifetime of a token.
pub(crate) fn parse_expiry(text: &str) -> Result<Span, String> {
    match text {
        "never" => Ok(NewToken::FOREVER),
        other => parse_duration(other).map_err(|error| format!("{error}; or write never")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_expires_after_a_time_or_never() {
        assert_eq!(parse_expiry("30d"), Ok(Span::from_secs(30 * 86_400)));
        assert_eq!(parse_expiry("never"), Ok(NewToken::FOREVER));
        assert!(parse_expiry("soon").unwrap_err().ends_with("; or write never"));
    }
}

//! Tokens: `cohabit1.<fingerprint>.<secret>`, all that a client or a worker needs to connect.
//!
//! The fingerprint names the cluster to trust, the secret names the user. The secret has no `Display`, and
//! `Debug` hides it; only `expose` shows it, for a file or screen that a person asked for.

use std::path::Path;
use std::str::FromStr;

use cohabit_wire::Secret;
use rustls::crypto::{GetRandomFailed, ring};

use crate::{Fingerprint, StateError, private_file};

/// The beginning of a token's text; another number is another format.
const PREFIX: &str = "cohabit1";

/// The cluster to trust, and a secret that it accepts.
#[derive(Debug, Clone)]
pub struct Token {
    fingerprint: Fingerprint,
    secret: Secret,
}

/// Why a token cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The text is no token.
    #[error("this is not a token: a token looks like {PREFIX}.<64 digits>.<64 digits>, on one line")]
    Malformed,
    /// The file holds no token.
    #[error("{} does not hold a token: {PREFIX}.<64 digits>.<64 digits>, on one line", .0.display())]
    MalformedFile(std::path::PathBuf),
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] StateError),
}

impl Token {
    pub(crate) const fn new(fingerprint: Fingerprint, secret: Secret) -> Token {
        Token { fingerprint, secret }
    }

    /// Reads a token from a file that only its owner may read.
    ///
    /// # Errors
    /// When there is none, when it is no token, or when others may read it.
    pub fn read_file(path: &Path) -> Result<Token, TokenError> {
        let bytes = private_file::read(path)?.ok_or_else(|| StateError::Read {
            path: path.to_owned(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        let malformed = || TokenError::MalformedFile(path.to_owned());
        let text = str::from_utf8(&bytes).map_err(|_| malformed())?;
        text.parse().map_err(|_| malformed())
    }

    /// Writes the token, with a newline, to a file that only its owner may read.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_file(&self, path: &Path) -> Result<(), StateError> {
        private_file::replace(path, format!("{}\n", self.expose()).as_bytes())
    }

    /// The cluster that it belongs to.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Its whole text, secret included.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("{PREFIX}.{}.{}", self.fingerprint, self.secret.expose_hex())
    }

    pub(crate) const fn secret(&self) -> Secret {
        self.secret
    }
}

/// Ignores white space around the token, so that a line of a file is a token.
impl FromStr for Token {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Token, TokenError> {
        let parts = text.trim().strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('.')?.split_once('.'));
        let (fingerprint, secret) = parts.ok_or(TokenError::Malformed)?;
        let fingerprint = fingerprint.parse().map_err(|_| TokenError::Malformed)?;
        let secret = Secret::from_hex(secret).ok_or(TokenError::Malformed)?;
        Ok(Token { fingerprint, secret })
    }
}

/// A new credential for a node.
///
/// # Errors
/// When the system provides no random numbers.
pub fn new_credential() -> std::io::Result<Secret> {
    draw_secret().map_err(|_| std::io::Error::other("the system provides no random numbers"))
}

/// A new secret, from the system's source of randomness.
pub(crate) fn draw_secret() -> Result<Secret, GetRandomFailed> {
    let mut bytes = [0; Secret::LENGTH];
    ring::default_provider().secure_random.fill(&mut bytes)?;
    Ok(Secret::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token::new(Fingerprint::of(b"ca"), draw_secret().unwrap())
    }

    #[test]
    fn a_token_reads_back_what_it_exposes() {
        let token = token();
        let read: Token = format!(" {}\n", token.expose()).parse().unwrap();
        assert_eq!(read.expose(), token.expose());
    }

    #[test]
    fn no_two_secrets_are_equal_and_none_shows_itself() {
        let (one, two) = (token(), token());
        assert_ne!(one.expose(), two.expose());
        let secret = one.secret.expose_hex();
        assert!(one.expose().ends_with(&secret));
        assert!(!format!("{one:?} {one:#?} {:?}", one.secret()).contains(&secret));
    }

    #[test]
    fn an_invalid_token_is_refused_without_printing_it() {
        let good = token().expose();
        for bad in
            ["", "cohabit1", "cohabit1..", &good[..good.len() - 1], &good.replace("cohabit1", "cohabit2")]
        {
            let error = bad.parse::<Token>().unwrap_err().to_string();
            assert!(error.contains("cohabit1.<64 digits>"), "{error}");
        }
    }

    #[test]
    fn a_token_file_round_trips_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        let token = token();
        token.write_file(&path).unwrap();
        assert_eq!(Token::read_file(&path).unwrap().expose(), token.expose());
        let missing = Token::read_file(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("none"), "{missing}");
    }
}

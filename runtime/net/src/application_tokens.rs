//! The secrets of applications: one for the processes of each attempt of an application, and a token with
//! which its coordinator submits runners.
//!
//! Both are derived from a key of the head and the attempt, so they are the same after a restart of the
//! head, and neither is stored. A token is good while its attempt runs and its user has a token of their
//! own.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use cohabit_types::{ApplicationCredentials, ApplicationSecret, AttemptId, JobId, Principal};
use cohabit_wire::Secret;
use ring::hmac;

use crate::token::draw_secret;
use crate::{Fingerprint, StateError, Token, TokenStore, private_file};

/// What a key derives, so that one secret tells nothing of another.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// By which the processes of an application know each other.
    Members,
    /// The token of its coordinator.
    Token,
}

/// Gives applications their secrets, and lets their tokens in; clones share them.
#[derive(Clone)]
pub struct ApplicationTokens {
    key: Arc<hmac::Key>,
    fingerprint: Fingerprint,
    tokens: TokenStore,
    /// The attempt of each application that runs.
    running: Arc<RwLock<BTreeMap<JobId, AttemptId>>>,
}

impl ApplicationTokens {
    /// Reads the key, or makes one at the first start. Blocks.
    ///
    /// # Errors
    /// When the file cannot be read or written, is exposed, or is no key.
    pub fn open(path: &Path, tokens: TokenStore) -> Result<ApplicationTokens, StateError> {
        let digits = match private_file::read(path)? {
            Some(bytes) => bytes,
            None => {
                let drawn = draw_secret()
                    .map_err(|_| StateError::invalid(path, "the system provides no random numbers"))?;
                let digits = format!("{}\n", drawn.expose_hex()).into_bytes();
                private_file::replace(path, &digits)?;
                digits
            }
        };
        let key = str::from_utf8(&digits).ok().and_then(|digits| Secret::from_hex(digits.trim()));
        let advice = "it is not 64 hexadecimal digits: restore it from a backup, or remove it, which ends the access \
                      of running applications to the head";
        let key = key.ok_or_else(|| StateError::invalid(path, advice))?;
        Ok(ApplicationTokens {
            key: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, key.expose_hex().as_bytes())),
            fingerprint: tokens.fingerprint(),
            tokens,
            running: Arc::default(),
        })
    }

    /// What a process of this attempt gets; the coordinator gets the token, too.
    #[must_use]
    pub fn credentials(&self, application: AttemptId, is_coordinator: bool) -> ApplicationCredentials {
        let secret = ApplicationSecret(self.derive(Purpose::Members, application));
        let token = || Token::new(self.fingerprint, self.token_secret(application)).expose();
        ApplicationCredentials { secret, token: is_coordinator.then(token) }
    }

    /// Lets in the token of the attempt of an application that runs now, and no other of it; none if it does
    /// not run.
    pub fn allow(&self, application: JobId, running: Option<(AttemptId, Principal)>) {
        let mut known = self.running.write().unwrap_or_else(PoisonError::into_inner);
        let attempt = running.as_ref().map(|(attempt, _)| *attempt);
        if known.get(&application).copied() == attempt {
            return;
        }
        if let Some(earlier) = known.remove(&application) {
            self.tokens.end_application(earlier);
        }
        if let Some((attempt, by)) = running {
            self.tokens.allow_application(attempt, by, self.token_secret(attempt));
            known.insert(application, attempt);
        }
    }

    fn token_secret(&self, application: AttemptId) -> Secret {
        Secret::new(self.derive(Purpose::Token, application))
    }

    fn derive(&self, purpose: Purpose, application: AttemptId) -> [u8; Secret::LENGTH] {
        let purpose = match purpose {
            Purpose::Members => "members",
            Purpose::Token => "token",
        };
        let tag = hmac::sign(&self.key, format!("{purpose} {application}").as_bytes());
        let mut secret = [0; Secret::LENGTH];
        secret.copy_from_slice(tag.as_ref());
        secret
    }
}

impl std::fmt::Debug for ApplicationTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApplicationTokens")
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Role, Time};

    use super::*;
    use crate::VerifyError;

    const NOW: Time = Time::EPOCH;

    fn open(folder: &Path) -> (TokenStore, ApplicationTokens) {
        let store = TokenStore::open(&folder.join("tokens.json"), Fingerprint::of(b"a certificate")).unwrap();
        let applications = ApplicationTokens::open(&folder.join("application-key"), store.clone()).unwrap();
        (store, applications)
    }

    fn ada() -> Principal {
        Principal::new("ada", Role::User)
    }

    #[test]
    fn a_token_is_good_while_its_attempt_runs_and_its_user_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let (store, applications) = open(folder.path());
        let job = JobId::new(3);
        let token = |attempt| -> Token {
            applications.credentials(job.attempt(attempt), true).token.unwrap().parse().unwrap()
        };
        let verify = |attempt| store.verify(&token(attempt), NOW);
        assert_eq!(verify(1), Err(VerifyError::Unknown));
        applications.allow(job, Some((job.attempt(1), ada())));
        assert_eq!(verify(1), Err(VerifyError::Unknown), "Ada has no token");
        store.create("ada", Role::User, None, NOW).unwrap();
        assert_eq!(verify(1), Ok(ada()));
        applications.allow(job, Some((job.attempt(2), ada())));
        assert_eq!((verify(1), verify(2)), (Err(VerifyError::Unknown), Ok(ada())));
        store.revoke("ada").unwrap();
        assert_eq!(verify(2), Err(VerifyError::Unknown));
        assert!(store.list().is_empty(), "it is in no list");
        store.create("ada", Role::User, None, NOW).unwrap();
        applications.allow(job, None);
        assert_eq!(verify(2), Err(VerifyError::Unknown));
    }

    #[test]
    fn secrets_survive_a_restart_and_differ_for_every_attempt_and_purpose() {
        let folder = tempfile::tempdir().unwrap();
        let attempts = [JobId::new(3).attempt(1), JobId::new(3).attempt(2), JobId::new(31).attempt(1)];
        let all = || attempts.map(|attempt| open(folder.path()).1.credentials(attempt, true));
        assert!(all() == all());
        let mut texts: Vec<String> = all()
            .iter()
            .flat_map(|it| [format!("{:?}", it.secret.0), it.token.clone().unwrap_or_default()])
            .collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 6);
        assert_eq!(open(folder.path()).1.credentials(attempts[0], false).token, None);
    }

    #[test]
    fn a_damaged_key_is_named_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path()));
        let path = folder.path().join("application-key");
        private_file::replace(&path, b"nonsense").unwrap();
        let store =
            TokenStore::open(&folder.path().join("tokens.json"), Fingerprint::of(b"a certificate")).unwrap();
        let error = ApplicationTokens::open(&path, store).unwrap_err().to_string();
        assert!(error.contains("application-key") && error.contains("restore it"), "{error}");
    }
}

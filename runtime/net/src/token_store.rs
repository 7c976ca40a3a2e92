//! The tokens that a head accepts. File and memory hold only the SHA-256 of each secret, which is useless to
//! a thief.
//!
//! A verification compares with every entry, so its duration reveals nothing. A change is written before it
//! takes effect, and reaches open links at once: a link ends when its token is revoked or expires.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cohabit_types::{
    AttemptId, FormatVersion, NewToken, Principal, Refusal, RefusalCode, Role, Span, Time, TokenRecord,
};
use cohabit_wire::Secret;
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tokio::sync::watch;

use crate::token::draw_secret;
use crate::{Fingerprint, StateError, Token, clock, digest, private_file};

/// The latest format of the file that is read. It is written where a token is for a node; a file without such
/// a token has the first, which earlier releases read.
const SCHEMA: FormatVersion = FormatVersion::new(2);
const REMEDY: &str = "start the newer version again, or remove the file, which revokes all tokens";
/// Names appear in tables and in the history of jobs.
const LONGEST_NAME: usize = 64;
/// An expiry is checked again at least this often, because the wall clock may be set meanwhile.
const RECHECK_INTERVAL: Duration = Duration::from_secs(30);

/// The tokens of a cluster; clones share them. Methods that change something block on the disk.
#[derive(Clone)]
pub struct TokenStore(Arc<Shared>);

struct Shared {
    path: PathBuf,
    fingerprint: Fingerprint,
    entries: watch::Sender<Vec<Entry>>,
    /// The tokens of applications that run. They are in no file, and no list.
    applications: watch::Sender<Vec<ApplicationEntry>>,
    /// Held while the file is written: one change at a time.
    writing: Mutex<()>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(rename = "token", with = "StoredRecord")]
    record: TokenRecord,
    #[serde(rename = "sha256", with = "digest")]
    digest: [u8; 32],
}

/// The token of an application that runs.
#[derive(Clone)]
struct ApplicationEntry {
    application: AttemptId,
    by: Principal,
    digest: [u8; 32],
}

/// The stored shape of a token; it stops compiling when [`TokenRecord`] has other fields.
#[derive(Serialize, Deserialize)]
#[serde(remote = "TokenRecord")]
struct StoredRecord {
    name: String,
    role: Role,
    #[serde(default)]
    account: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    created_at: Time,
    expires_at: Option<Time>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: FormatVersion,
    tokens: Vec<Entry>,
}

/// Why a token was not made or revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenStoreError {
    /// Another token has this name.
    #[error("there already is a token named '{0}': choose another name, or revoke that token first")]
    NameTaken(String),
    /// No token can have this name.
    #[error(
        "'{0}' is not a valid name of a token: use 1 to {LONGEST_NAME} letters, digits and characters of '-_.@'"
    )]
    BadName(String),
    /// No account can have this name.
    #[error(
        "'{0}' is not a valid name of an account: use 1 to {LONGEST_NAME} letters, digits and characters of '-_.@'"
    )]
    BadAccount(String),
    /// No node can have this name.
    #[error(
        "'{0}' is not a valid name of a node: use 1 to {LONGEST_NAME} letters, digits and characters of '-_.@'"
    )]
    BadNode(String),
    /// A viewer has no jobs.
    #[error("a token with role viewer submits no jobs, which could run as an account: leave out --account")]
    AccountOfViewer,
    /// Only a worker serves a node.
    #[error("only a token with role worker is for one node, and this one has the role {0}: leave out --node")]
    NodeOfOtherRole(Role),
    /// Only an admin's jobs may run as an account with all rights.
    #[error(
        "the jobs of a {0} never run as root: name the account of the user with --account, or create the token \
         with --role admin"
    )]
    Root(Role),
    /// No token has this name.
    #[error("there is no token named '{0}': `cohabit token list` shows all names")]
    Unknown(String),
    /// The system has no randomness.
    #[error("cannot create a token: the system provides no random numbers")]
    NoRandomness,
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] StateError),
}

/// Why a secret is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// There is no such token, or it was revoked.
    #[error("the token is unknown or was revoked: ask an admin for a new one")]
    Unknown,
    /// It has expired.
    #[error("the token has expired: ask an admin for a new one")]
    Expired,
}

/// Why a token is no longer good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenEnd {
    /// It was revoked.
    Revoked,
    /// It expired.
    Expired,
}

/// An accepted token: its user, and the entry to watch. A later token of the same name is another entry.
#[derive(Clone)]
pub(crate) struct Grant {
    pub(crate) by: Principal,
    /// The one node that its worker may be.
    pub(crate) node: Option<String>,
    /// The application whose coordinator it is, if it is one.
    pub(crate) application: Option<AttemptId>,
    digest: [u8; 32],
}

impl Grant {
    /// The SHA-256 of the token's secret.
    pub(crate) const fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

impl TokenStore {
    /// Opens the tokens of the cluster with this fingerprint, or begins with none.
    ///
    /// # Errors
    /// When the file cannot be read, is exposed, is corrupt, or was written by a later version. It stays
    /// untouched.
    pub fn open(path: &Path, fingerprint: Fingerprint) -> Result<TokenStore, StateError> {
        let entries = private_file::read(path)?.map_or(Ok(Vec::new()), |bytes| read_entries(path, &bytes))?;
        Ok(TokenStore(Arc::new(Shared {
            path: path.to_owned(),
            fingerprint,
            entries: watch::Sender::new(entries),
            applications: watch::Sender::new(Vec::new()),
            writing: Mutex::new(()),
        })))
    }

    /// Makes a token whose jobs run as the account of the same name.
    ///
    /// # Errors
    /// As for [`create_for`](TokenStore::create_for).
    pub fn create(
        &self,
        name: &str,
        role: Role,
        expires_in: Option<Span>,
        now: Time,
    ) -> Result<Token, TokenStoreError> {
        let new = NewToken { name: name.to_owned(), role, account: None, node: None, expires_in };
        self.create_for(&new, now)
    }

    /// Makes a token. Only the returned value holds its secret.
    ///
    /// # Errors
    /// When the name is taken or unfit, the account or the node is not for this role, or the file cannot be
    /// written.
    pub fn create_for(&self, new: &NewToken, now: Time) -> Result<Token, TokenStoreError> {
        let NewToken { name, role, account, node, expires_in } = new;
        check_name(name)?;
        if *role == Role::Viewer && account.is_some() {
            return Err(TokenStoreError::AccountOfViewer);
        }
        check_account(account.as_ref().unwrap_or(name), *role)?;
        if let Some(node) = node {
            check_node(node, *role)?;
        }
        let secret = draw_secret().map_err(|_| TokenStoreError::NoRandomness)?;
        let record = TokenRecord {
            name: name.clone(),
            role: *role,
            account: account.clone().filter(|account| account != name),
            node: node.clone(),
            created_at: now,
            expires_at: expires_in.map(|span| now + span),
        };
        self.change(|entries| {
            if entries.iter().any(|entry| entry.record.name == *name) {
                return Err(TokenStoreError::NameTaken(name.clone()));
            }
            entries.push(Entry { record, digest: secret.digest() });
            Ok(())
        })?;
        Ok(Token::new(self.0.fingerprint, secret))
    }

    /// Revokes a token, at once, for open links too.
    ///
    /// # Errors
    /// When there is none of this name, or the file cannot be written.
    pub fn revoke(&self, name: &str) -> Result<(), TokenStoreError> {
        self.change(|entries| {
            let place = entries.iter().position(|entry| entry.record.name == name);
            entries.remove(place.ok_or_else(|| TokenStoreError::Unknown(name.to_owned()))?);
            Ok(())
        })
    }

    /// All tokens, the oldest first, without secrets.
    #[must_use]
    pub fn list(&self) -> Vec<TokenRecord> {
        self.0.entries.borrow().iter().map(|entry| entry.record.clone()).collect()
    }

    /// Whether there is a token of this name that has not expired.
    #[cfg(test)]
    fn is_valid(&self, name: &str, now: Time) -> bool {
        self.0.entries.borrow().iter().any(|entry| entry.record.name == name && !entry.is_expired(now))
    }

    /// The user and role of the token with this secret.
    ///
    /// # Errors
    /// When the token is not accepted, or not any more.
    pub fn verify(&self, token: &Token, now: Time) -> Result<Principal, VerifyError> {
        self.admit(token.secret(), now).map(|grant| grant.by)
    }

    pub(crate) fn admit(&self, secret: Secret, now: Time) -> Result<Grant, VerifyError> {
        let digest = secret.digest();
        let entries = self.0.entries.borrow();
        if let Some(grant) = self.admit_application(&entries, digest, now) {
            return Ok(grant);
        }
        let entry = find(&entries, &digest).ok_or(VerifyError::Unknown)?;
        if entry.is_expired(now) {
            return Err(VerifyError::Expired);
        }
        let TokenRecord { name, role, account, node, .. } = &entry.record;
        let by = Principal { user: name.clone(), role: *role, account: account.clone() };
        Ok(Grant { by, node: node.clone(), application: None, digest })
    }

    /// The grant for the token of an application that runs, while its user has a token that is good.
    fn admit_application(&self, entries: &[Entry], digest: [u8; 32], now: Time) -> Option<Grant> {
        let applications = self.0.applications.borrow();
        let entry = find_application(&applications, &digest)?;
        let by = has_good_token(entries, &entry.by, now).then(|| entry.by.clone())?;
        Some(Grant { by, node: None, application: Some(entry.application), digest })
    }

    /// Accepts the token of an application that runs, with this secret, on behalf of this user.
    pub(crate) fn allow_application(&self, application: AttemptId, by: Principal, secret: Secret) {
        let entry = ApplicationEntry { application, by, digest: secret.digest() };
        self.0.applications.send_modify(|entries| entries.push(entry));
    }

    /// Does not accept the token of this application any more; ends its links.
    pub(crate) fn end_application(&self, application: AttemptId) {
        self.0.applications.send_modify(|entries| entries.retain(|it| it.application != application));
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint
    }

    /// Waits until an accepted token is no longer good.
    pub(crate) async fn ended(&self, grant: &Grant) -> TokenEnd {
        let mut changes = self.0.entries.subscribe();
        let mut applications = self.0.applications.subscribe();
        loop {
            let left = {
                let (entries, applications) = (changes.borrow_and_update(), applications.borrow_and_update());
                remaining(&entries, &applications, grant, clock::now())
            };
            let nap = match left {
                Err(end) => return end,
                Ok(left) => left.map_or(RECHECK_INTERVAL, |left| Duration::from(left).min(RECHECK_INTERVAL)),
            };
            // Wakes on a change or when the pause ends. The senders live in `self`, so they cannot close.
            let _ = tokio::time::timeout(nap, async {
                tokio::select! {
                    _ = changes.changed() => {}
                    _ = applications.changed() => {}
                }
            })
            .await;
        }
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Entry>) -> Result<(), TokenStoreError>,
    ) -> Result<(), TokenStoreError> {
        let _writing = self.0.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = self.0.entries.borrow().clone();
        change(&mut entries)?;
        let is_for_node = |entry: &Entry| entry.record.node.is_some();
        let schema = if entries.iter().any(is_for_node) { SCHEMA } else { FormatVersion::FIRST };
        let stored = Stored { schema, tokens: entries };
        let text = serde_json::to_vec_pretty(&stored).expect("names, times and digits have a JSON form");
        private_file::replace(&self.0.path, &text)?;
        self.0.entries.send_replace(stored.tokens);
        Ok(())
    }
}

impl Entry {
    fn is_expired(&self, now: Time) -> bool {
        self.record.expires_at.is_some_and(|end| end <= now)
    }
}

/// Compares with every entry, whether or not one was found before, and each in constant time.
fn find<'a>(entries: &'a [Entry], digest: &[u8; 32]) -> Option<&'a Entry> {
    let mut found = u64::MAX;
    for (place, entry) in (0u64..).zip(entries) {
        let same: Choice = entry.digest.ct_eq(digest);
        found.conditional_assign(&place, same);
    }
    entries.get(usize::try_from(found).ok()?)
}

/// The same for the tokens of applications.
fn find_application<'a>(entries: &'a [ApplicationEntry], digest: &[u8; 32]) -> Option<&'a ApplicationEntry> {
    let mut found = u64::MAX;
    for (place, entry) in (0u64..).zip(entries) {
        let same: Choice = entry.digest.ct_eq(digest);
        found.conditional_assign(&place, same);
    }
    entries.get(usize::try_from(found).ok()?)
}

/// Whether a user has a token that is good.
fn has_good_token(entries: &[Entry], by: &Principal, now: Time) -> bool {
    entries.iter().any(|entry| entry.record.name == by.user && !entry.is_expired(now))
}

/// How long the grant is still good; none if it does not expire.
fn remaining(
    entries: &[Entry],
    applications: &[ApplicationEntry],
    grant: &Grant,
    now: Time,
) -> Result<Option<Span>, TokenEnd> {
    if grant.application.is_some() {
        find_application(applications, &grant.digest).ok_or(TokenEnd::Revoked)?;
        return if has_good_token(entries, &grant.by, now) { Ok(None) } else { Err(TokenEnd::Revoked) };
    }
    let entry = find(entries, &grant.digest).ok_or(TokenEnd::Revoked)?;
    if entry.is_expired(now) {
        return Err(TokenEnd::Expired);
    }
    Ok(entry.record.expires_at.map(|end| end.since(now)))
}

fn check_name(name: &str) -> Result<(), TokenStoreError> {
    if is_name(name) { Ok(()) } else { Err(TokenStoreError::BadName(name.to_owned())) }
}

/// A worker finds out other names of the same account, and refuses the job.
fn check_account(account: &str, role: Role) -> Result<(), TokenStoreError> {
    match role {
        Role::User if account == "root" => Err(TokenStoreError::Root(role)),
        Role::User | Role::Worker | Role::Admin | Role::Viewer if is_name(account) => Ok(()),
        Role::User | Role::Worker | Role::Admin | Role::Viewer => {
            Err(TokenStoreError::BadAccount(account.to_owned()))
        }
    }
}

/// A node's name, as a worker may be given one; only a worker serves a node.
fn check_node(node: &str, role: Role) -> Result<(), TokenStoreError> {
    match role {
        Role::User | Role::Admin | Role::Viewer => Err(TokenStoreError::NodeOfOtherRole(role)),
        Role::Worker if is_name(node) => Ok(()),
        Role::Worker => Err(TokenStoreError::BadNode(node.to_owned())),
    }
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    !text.is_empty() && text.len() <= LONGEST_NAME && text.chars().all(fits)
}

fn read_entries(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, StateError> {
    let advice = "restore it from a backup, or remove it, which revokes all tokens";
    #[derive(Deserialize)]
    struct Schema {
        schema: FormatVersion,
    }
    let invalid = |error| StateError::invalid(path, format!("{error}; {advice}"));
    let Schema { schema } = serde_json::from_slice(bytes).map_err(invalid)?;
    schema.check(SCHEMA, REMEDY).map_err(|newer| StateError::invalid(path, newer))?;
    serde_json::from_slice(bytes).map(|stored: Stored| stored.tokens).map_err(invalid)
}

impl From<TokenStoreError> for Refusal {
    fn from(error: TokenStoreError) -> Refusal {
        let code = match error {
            TokenStoreError::NameTaken(_)
            | TokenStoreError::BadName(_)
            | TokenStoreError::BadAccount(_)
            | TokenStoreError::BadNode(_)
            | TokenStoreError::NodeOfOtherRole(_)
            | TokenStoreError::AccountOfViewer
            | TokenStoreError::Root(_) => RefusalCode::Invalid,
            TokenStoreError::Unknown(_) => RefusalCode::NotFound,
            TokenStoreError::NoRandomness | TokenStoreError::File(_) => RefusalCode::Internal,
        };
        Refusal::new(code, error.to_string())
    }
}

/// Says how many there are.
impl std::fmt::Debug for TokenStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenStore({} tokens)", self.0.entries.borrow().len())
    }
}

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use super::*;

    /// Either every token is written back as it was read, or the file is refused by its name.
    pub(crate) fn reads(bytes: &[u8]) {
        match read_entries(Path::new("tokens.json"), bytes) {
            Ok(tokens) => {
                let written =
                    serde_json::to_vec(&Stored { schema: SCHEMA, tokens }).expect("it has a JSON form");
                let again =
                    read_entries(Path::new("tokens.json"), &written).expect("what was written is read");
                assert_eq!(
                    written,
                    serde_json::to_vec(&Stored { schema: SCHEMA, tokens: again }).unwrap_or_default()
                );
            }
            Err(error) => assert!(error.to_string().contains("tokens.json"), "{error}"),
        }
    }
}

#[cfg(test)]
mod tests;

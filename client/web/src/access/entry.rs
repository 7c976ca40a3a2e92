//! One-time keys, and the sessions that they open.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::secret::{SecretDigest, new_secret};

/// How long a key opens a session.
pub(crate) const KEY_LIFETIME: Duration = Duration::from_secs(60);
/// How long a session lasts.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3_600);
/// Keys and sessions that are good at once: the oldest gives way.
const MOST: usize = 32;

/// The keys and sessions of one server.
#[derive(Debug, Default)]
pub(crate) struct EntryKeys(Mutex<EntrySecrets>);

#[derive(Debug, Default)]
struct EntrySecrets {
    keys: Vec<Dated>,
    sessions: Vec<Dated>,
}

/// A secret and when it was made.
#[derive(Debug)]
struct Dated(SecretDigest, Instant);

impl EntryKeys {
    /// A new key.
    pub(crate) fn issue_key(&self, now: Instant) -> String {
        add(&mut self.lock().keys, now)
    }

    /// The session that this key opens, if it was not used before and is not too old.
    pub(crate) fn redeem(&self, key: &str, now: Instant) -> Option<String> {
        let mut secrets = self.lock();
        let at = secrets.keys.iter().position(|known| known.is_good(key, now, KEY_LIFETIME))?;
        secrets.keys.remove(at);
        Some(add(&mut secrets.sessions, now))
    }

    /// Whether there is this session.
    pub(crate) fn has_session(&self, session: &str, now: Instant) -> bool {
        self.lock().sessions.iter().any(|known| known.is_good(session, now, SESSION_LIFETIME))
    }

    /// No panic leaves the lists half-written.
    fn lock(&self) -> MutexGuard<'_, EntrySecrets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dated {
    fn is_good(&self, text: &str, now: Instant, lifetime: Duration) -> bool {
        self.0.is_of(text) && now.saturating_duration_since(self.1) < lifetime
    }
}

fn add(list: &mut Vec<Dated>, now: Instant) -> String {
    let (text, digest) = new_secret();
    if list.len() >= MOST {
        list.remove(0);
    }
    list.push(Dated(digest, now));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_one_session() {
        let (entry, now) = (EntryKeys::default(), Instant::now());
        let key = entry.issue_key(now);
        let session = entry.redeem(&key, now).unwrap();
        assert_eq!(entry.redeem(&key, now), None, "it was used");
        assert!(entry.has_session(&session, now));
        assert!(!entry.has_session(&key, now) && !entry.has_session("", now));
    }

    #[test]
    fn keys_and_sessions_expire() {
        let (entry, now) = (EntryKeys::default(), Instant::now());
        let key = entry.issue_key(now);
        assert_eq!(entry.redeem(&key, now + KEY_LIFETIME), None);
        let later = entry.issue_key(now);
        let session = entry.redeem(&later, now + KEY_LIFETIME - Duration::from_secs(1)).unwrap();
        assert!(entry.has_session(&session, now + SESSION_LIFETIME));
        assert!(!entry.has_session(&session, now + SESSION_LIFETIME + KEY_LIFETIME));
    }

    #[test]
    fn the_oldest_session_gives_way_to_the_newest() {
        let (entry, now) = (EntryKeys::default(), Instant::now());
        let sessions: Vec<String> =
            (0..=MOST).map(|_| entry.redeem(&entry.issue_key(now), now).unwrap()).collect();
        assert!(!entry.has_session(&sessions[0], now));
        assert!(sessions[1..].iter().all(|session| entry.has_session(session, now)));
    }
}

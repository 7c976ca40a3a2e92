//! What a connection from another node begins with, before TLS: whom it is for.
//!
//! It is read by the process that has the port of the node, and proves nothing: whoever takes the connection
//! asks for the key of the application, and for whom the connection is once more.

use bytes::{Buf, BufMut};
use cohabit_types::{JobId, RankId};

/// Bytes of a greeting.
pub(super) const GREETING_BYTES: usize = 28;

/// What no other protocol begins with.
const MAGIC: [u8; 8] = *b"\xc0habit\x00\x01";

/// Whom a connection between nodes is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NetworkGreeting {
    /// The process. For objects, any of the node.
    pub(crate) to: RankId,
    /// What travels on it.
    pub(crate) kind: GreetingKind,
}

/// What travels on a connection between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GreetingKind {
    /// The session of two members.
    Session,
    /// Objects, from the store of the node that was dialed.
    Objects,
}

/// A connection does not begin as those between the processes of an application do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it does not begin as connections between the nodes of an application do")]
pub(super) struct NoGreeting;

impl GreetingKind {
    const ALL: [GreetingKind; 2] = [GreetingKind::Session, GreetingKind::Objects];

    const fn number(self) -> u32 {
        match self {
            GreetingKind::Session => 0,
            GreetingKind::Objects => 1,
        }
    }
}

impl NetworkGreeting {
    /// Neither applications nor their children are arrays: the number names the job.
    pub(super) fn to_bytes(self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        let mut rest = &mut bytes[..];
        rest.put_slice(&MAGIC);
        rest.put_u64_le(self.to.job().number);
        rest.put_u32_le(self.to.attempt.attempt);
        rest.put_u32_le(self.to.rank);
        rest.put_u32_le(self.kind.number());
        bytes
    }

    /// # Errors
    /// If it is none.
    pub(super) fn from_bytes(bytes: &[u8; GREETING_BYTES]) -> Result<NetworkGreeting, NoGreeting> {
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or(NoGreeting)?;
        let to = JobId::new(rest.get_u64_le()).attempt(rest.get_u32_le()).rank(rest.get_u32_le());
        let number = rest.get_u32_le();
        let kind = GreetingKind::ALL.into_iter().find(|it| it.number() == number);
        kind.map(|kind| NetworkGreeting { to, kind }).ok_or(NoGreeting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_read_as_it_was_written_and_nothing_else_is_one() {
        for kind in GreetingKind::ALL {
            let greeting = NetworkGreeting { to: JobId::new(u64::MAX - 3).attempt(7).rank(2), kind };
            assert_eq!(NetworkGreeting::from_bytes(&greeting.to_bytes()), Ok(greeting));
        }
        let greeting = NetworkGreeting { to: JobId::new(3).attempt(7).rank(2), kind: GreetingKind::Objects };
        let bytes = greeting.to_bytes();
        assert_eq!(bytes[8..], [3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0]);
        for at in (0..8).chain(24..28) {
            let mut other = bytes;
            other[at] ^= 0x80;
            assert_eq!(NetworkGreeting::from_bytes(&other), Err(NoGreeting), "byte {at}");
        }
        assert_eq!(NetworkGreeting::from_bytes(b"GET / HTTP/1.1\r\nHost: n01:80"), Err(NoGreeting));
    }
}

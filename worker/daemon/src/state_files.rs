//! The formats of the state directory's own files: `node.json`, `credential.json`, `clock.json` and
//! `private-users.json`.
//!
//! Each carries its version; a file without one has the first. A daemon refuses a later version, names both,
//! and leaves the file as it is. `golden` holds what each version wrote; those files are never changed.

use std::collections::BTreeMap;

use cohabit_host::format::{FormatError, VersionedFile, decode_file, encode_json};
use cohabit_net::Secret;
use cohabit_types::{FormatVersion, Incarnation, NodeId, Time};
use serde::{Deserialize, Serialize};

/// The version that is written of each file, and the latest that is read.
const VERSION: FormatVersion = FormatVersion::FIRST;

const REMEDY: &str = "start the newer version again, or give this one another directory with --state";

/// Which node this is, and the last number that is reserved for its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeIdentity {
    pub(crate) id: NodeId,
    pub(crate) incarnation: Incarnation,
}

/// The secret by which the head knows this node's worker. In a file of its own, which a release before it
/// leaves alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeCredential(pub(crate) Secret);

/// When the host booted, as all daemons and executors of the directory agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgreedClock {
    /// The boot id.
    pub(crate) boot: Option<String>,
    pub(crate) at: Time,
}

/// The user id of each name without an account.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct PrivateUids(pub(crate) BTreeMap<String, u32>);

#[derive(Serialize, Deserialize)]
struct NodeFile {
    #[serde(default)]
    version: FormatVersion,
    id: NodeId,
    incarnation: Incarnation,
}

impl VersionedFile for NodeIdentity {
    fn encode(&self) -> Vec<u8> {
        let NodeIdentity { id, incarnation } = *self;
        encode_json(&NodeFile { version: VERSION, id, incarnation })
    }

    fn decode(text: &[u8]) -> Result<NodeIdentity, FormatError> {
        let file = decode_file(text, VERSION, REMEDY, |file: &NodeFile| file.version)?;
        Ok(NodeIdentity { id: file.id, incarnation: file.incarnation })
    }
}

#[derive(Serialize, Deserialize)]
struct CredentialFile {
    #[serde(default)]
    version: FormatVersion,
    secret: String,
}

impl VersionedFile for NodeCredential {
    fn encode(&self) -> Vec<u8> {
        encode_json(&CredentialFile { version: VERSION, secret: self.0.expose_hex() })
    }

    fn decode(text: &[u8]) -> Result<NodeCredential, FormatError> {
        let file = decode_file(text, VERSION, REMEDY, |file: &CredentialFile| file.version)?;
        let malformed = || FormatError::Json(serde::de::Error::custom("a secret has 64 hexadecimal digits"));
        Secret::from_hex(&file.secret).map(NodeCredential).ok_or_else(malformed)
    }
}

#[derive(Serialize, Deserialize)]
struct ClockFile {
    #[serde(default)]
    version: FormatVersion,
    boot: Option<String>,
    at: Time,
}

impl VersionedFile for AgreedClock {
    fn encode(&self) -> Vec<u8> {
        encode_json(&ClockFile { version: VERSION, boot: self.boot.clone(), at: self.at })
    }

    fn decode(text: &[u8]) -> Result<AgreedClock, FormatError> {
        let file = decode_file(text, VERSION, REMEDY, |file: &ClockFile| file.version)?;
        Ok(AgreedClock { boot: file.boot, at: file.at })
    }
}

/// The first version is the map alone, in which every key is a name, so it cannot say its version. A later
/// one says its version and has a value that is no id, so no map of ids can be taken for it.
impl VersionedFile for PrivateUids {
    fn encode(&self) -> Vec<u8> {
        encode_json(&self.0)
    }

    fn decode(text: &[u8]) -> Result<PrivateUids, FormatError> {
        decode_file(text, VERSION, REMEDY, |_| VERSION).map(PrivateUids)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// What a released version wrote is read as this value, which is now written like the second text.
    fn holds<T: VersionedFile + PartialEq + std::fmt::Debug>(value: &T, released: [&str; 2]) {
        for text in released {
            assert_eq!(T::decode(text.as_bytes()).unwrap(), *value);
        }
        assert_eq!(String::from_utf8(value.encode()).unwrap(), released[1]);
    }

    #[test]
    fn files_of_all_releases_are_read_and_the_latest_version_is_written() {
        let node = NodeIdentity { id: NodeId(Uuid::from_u128(7)), incarnation: Incarnation(3) };
        holds(&node, [include_str!("../golden/node-earliest.json"), include_str!("../golden/node-1.json")]);
        let credential = NodeCredential::decode(include_bytes!("../golden/credential-1.json")).unwrap();
        assert_eq!(credential.encode(), include_bytes!("../golden/credential-1.json"));
        assert_eq!(credential.0.expose_hex(), "07".repeat(32));
        let clock = AgreedClock { boot: Some("b0".into()), at: Time::from_micros(1_763_800_000_000_000) };
        holds(
            &clock,
            [include_str!("../golden/clock-earliest.json"), include_str!("../golden/clock-1.json")],
        );
        let users = [("ada".to_owned(), 61_184), ("version".to_owned(), 61_185)];
        let text = include_str!("../golden/private-users-1.json");
        holds(&PrivateUids(users.into()), [text, text]);
    }

    #[test]
    fn later_versions_are_refused_with_both_versions_and_the_remedy() {
        fn refusal<T: VersionedFile>(text: &str) -> String {
            T::decode(text.as_bytes()).map(drop).unwrap_err().to_string()
        }
        for refusal in [
            refusal::<NodeIdentity>(r#"{"version":2,"id":7}"#),
            refusal::<NodeCredential>(r#"{"version":2,"key":[]}"#),
            refusal::<AgreedClock>(r#"{"version":2,"boots":[]}"#),
            refusal::<PrivateUids>(r#"{"version":2,"users":{"ada":61184}}"#),
        ] {
            for part in ["version 2", "reads 1 to 1", "start the newer version", "--state"] {
                assert!(refusal.contains(part), "{refusal}");
            }
        }
    }
}

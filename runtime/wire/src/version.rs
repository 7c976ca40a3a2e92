//! The versions of the protocol, and what to upgrade when two peers share none.

/// The protocol of this build. Raised with every change of what travels on links.
pub const PROTOCOL_VERSION: u32 = ProtocolVersion::CURRENT.number();

/// The version of this build, for people.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// A protocol that a head of this build serves: its own, or the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// One method for all changes and one for all questions.
    V4,
    /// One method for each change and each question.
    V5,
}

impl ProtocolVersion {
    /// What this build speaks to its equals.
    pub const CURRENT: ProtocolVersion = ProtocolVersion::V5;
    /// The oldest that a head of this build serves.
    pub const OLDEST: ProtocolVersion = ProtocolVersion::V4;

    /// As it stands in a hello.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            ProtocolVersion::V4 => 4,
            ProtocolVersion::V5 => 5,
        }
    }

    /// The version with this number, if a head of this build serves it.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<ProtocolVersion> {
        match number {
            4 => Some(ProtocolVersion::V4),
            5 => Some(ProtocolVersion::V5),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_serves_its_own_protocol_and_the_one_before() {
        assert_eq!(ProtocolVersion::CURRENT.number(), ProtocolVersion::OLDEST.number() + 1);
        let served: Vec<u32> =
            (0..20).filter(|number| ProtocolVersion::from_number(*number).is_some()).collect();
        assert_eq!(served, [ProtocolVersion::OLDEST.number(), PROTOCOL_VERSION]);
        for number in served {
            assert_eq!(ProtocolVersion::from_number(number).map(ProtocolVersion::number), Some(number));
        }
    }
}

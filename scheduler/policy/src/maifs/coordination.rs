//! How agents agree on a joint action: the method of the paper, and what it is compared with (section 10).

use std::str::FromStr;

/// How agents agree on a joint action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coordination {
    /// Every node is an agent; max-plus on this graph.
    Agents(GraphKind),
    /// One agent chooses the node, the job and the level of at most one start in a sub-step.
    Single,
}

/// Which pairs of agents are coordinated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GraphKind {
    /// Agents that are likely to want the same job (section 6).
    Dynamic,
    /// None: every agent chooses alone.
    Empty,
    /// All.
    Full,
}

impl Default for Coordination {
    fn default() -> Coordination {
        Coordination::Agents(GraphKind::Dynamic)
    }
}

const ALL: [Coordination; 4] = [
    Coordination::Agents(GraphKind::Dynamic),
    Coordination::Agents(GraphKind::Empty),
    Coordination::Agents(GraphKind::Full),
    Coordination::Single,
];

/// A word that names no way to coordinate agents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown coordination '{0}': use dynamic, none, full or single")]
pub struct UnknownCoordination(String);

impl Coordination {
    /// The word on command lines and in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Coordination::Agents(GraphKind::Dynamic) => "dynamic",
            Coordination::Agents(GraphKind::Empty) => "none",
            Coordination::Agents(GraphKind::Full) => "full",
            Coordination::Single => "single",
        }
    }
}

impl FromStr for Coordination {
    type Err = UnknownCoordination;

    fn from_str(text: &str) -> Result<Coordination, UnknownCoordination> {
        let found = ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| UnknownCoordination(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_what_it_came_from() {
        for coordination in ALL {
            assert_eq!(coordination.as_str().parse(), Ok(coordination));
        }
        let error = "static".parse::<Coordination>().unwrap_err();
        assert_eq!(error.to_string(), "unknown coordination 'static': use dynamic, none, full or single");
    }
}

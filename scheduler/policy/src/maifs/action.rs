//! What agents do in one sub-step (section 4).

/// What one agent, that is one node, does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentAction {
    /// It starts no job. Always legal.
    #[default]
    Nothing,
    /// It starts a job.
    Start {
        /// The job's place in the window, from 0.
        job: usize,
        /// The level of its share of cores and memory, from 0.
        level: usize,
    },
}

impl AgentAction {
    /// The index among the actions of an agent: 0 is nothing, `1 + job * levels + level` starts a job.
    #[must_use]
    pub fn index(self, levels: usize) -> usize {
        match self {
            AgentAction::Nothing => 0,
            AgentAction::Start { job, level } => 1 + job * levels + level,
        }
    }

    /// The action with this index.
    #[must_use]
    pub fn from_index(index: usize, levels: usize) -> AgentAction {
        match index.checked_sub(1) {
            None => AgentAction::Nothing,
            Some(at) => AgentAction::Start { job: at / levels, level: at % levels },
        }
    }

    /// The index without the level: 0 is nothing, `1 + job` a job.
    #[must_use]
    pub fn task(self) -> usize {
        match self {
            AgentAction::Nothing => 0,
            AgentAction::Start { job, .. } => 1 + job,
        }
    }
}

/// What all agents do in one sub-step, in the order of the nodes.
pub type JointAction = Vec<AgentAction>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_count_levels_within_jobs() {
        assert_eq!(AgentAction::Nothing.index(5), 0);
        assert_eq!(AgentAction::Start { job: 1, level: 2 }.index(5), 8);
        for index in 0..31 {
            assert_eq!(AgentAction::from_index(index, 5).index(5), index);
        }
        assert_eq!(AgentAction::Start { job: 1, level: 2 }.task(), 2);
    }
}

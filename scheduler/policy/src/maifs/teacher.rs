//! The teacher (section 8): the shortest expected job first, on the tightest node, with the share that makes
//! it fastest. It is what `maifs` does without trained agents, and what agents first imitate.

use super::action::{AgentAction, JointAction};
use super::situation::Situation;

/// What the teacher does, and for each agent what it teaches: nothing where the choice between nodes that are
/// alike was arbitrary.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lesson {
    pub(super) action: JointAction,
    pub(super) taught: Vec<Option<AgentAction>>,
}

/// The teacher's joint action: as many starts as there are nodes for them, one on each.
pub(super) fn teach(situation: &Situation) -> Lesson {
    let nodes = situation.nodes.len();
    let mut action: JointAction = vec![AgentAction::Nothing; nodes];
    let mut order: Vec<usize> = (0..situation.window.len()).collect();
    let is_due = |job: usize| situation.is_first_due && job == 0;
    order.sort_by_key(|job| (!is_due(*job), situation.window[*job].1, situation.window[*job].0));
    for job in order {
        let free = |node: &usize| {
            action[*node] == AgentAction::Nothing && situation.best_level(*node, job).is_some()
        };
        let tightest = (0..nodes).filter(free).min_by_key(|node| (situation.nodes[*node].1, *node));
        if let Some(node) = tightest
            && let Some(level) = situation.best_level(node, job)
        {
            action[node] = AgentAction::Start { job, level };
        }
    }
    let alike = |node: usize| {
        let same = |other: &usize| *other != node && situation.is_alike(*other, node);
        (0..nodes).filter(same).any(|other| action[other] != action[node])
    };
    let taught = action.iter().enumerate().map(|(node, chosen)| match chosen {
        AgentAction::Nothing if alike(node) => None,
        AgentAction::Nothing | AgentAction::Start { .. } => Some(*chosen),
    });
    let taught = taught.collect();
    Lesson { action, taught }
}

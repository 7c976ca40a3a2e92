//! A node without room for a rank is given time.
//!
//! Its worker is well, but its disk is full, or it has no more files, processes or memory: what is sent there
//! comes back at once. It gets nothing for a while, for longer each time, until a rank starts there again. No
//! job pays for that, however often it happens.

use cohabit_types::{NodeId, RetryPolicy, Span, Time};
use serde::{Deserialize, Serialize};

use crate::alarm::Alarm;
use crate::turn::Transition;

/// How long a node is left alone.
const NODE_BACKOFF: RetryPolicy =
    RetryPolicy { limit: 0, backoff: Span::from_secs(1), backoff_cap: Span::from_secs(60) };

/// What kept a rank from starting on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeProblem {
    /// In the worker's words.
    pub(crate) what: String,
    /// So often since a rank last started there.
    times: u32,
    /// No jobs until then; none if it is being tried again.
    pub(crate) paused_until: Option<Time>,
}

impl Transition<'_> {
    /// A rank found no room there. Others that were sent there with it say nothing new.
    pub(crate) fn pause_node(&mut self, id: NodeId, what: &str) {
        let now = self.now;
        let Some(node) = self.head.node_mut(id).filter(|node| !node.is_paused()) else { return };
        let times = node.trouble.as_ref().map_or(0, |trouble| trouble.times) + 1;
        let until = now + NODE_BACKOFF.pause(times);
        node.trouble = Some(NodeProblem { what: what.to_owned(), times, paused_until: Some(until) });
        self.set_alarm(until, Alarm::Pause(id));
    }

    pub(crate) fn end_node_pause(&mut self, id: NodeId) {
        let now = self.now;
        let trouble = self.head.node_mut(id).and_then(|node| node.trouble.as_mut());
        if let Some(due) = trouble.filter(|it| it.paused_until.is_some_and(|until| until <= now)) {
            due.paused_until = None;
            self.head.plan_wanted = true;
        }
    }

    /// A rank started there, so there is room again.
    pub(crate) fn clear_node_problem(&mut self, id: NodeId) {
        if self.head.nodes.get(&id).is_none_or(|node| node.trouble.is_none()) {
            return;
        }
        if let Some(node) = self.head.node_mut(id) {
            node.trouble = None;
            self.head.plan_wanted = true;
        }
    }
}

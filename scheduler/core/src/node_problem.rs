//! Back-off for nodes on which ranks cannot start.
//!
//! The worker is connected, but its disk is full, or it has run out of files, processes or memory, so every
//! rank sent there fails at once. Such a node gets no jobs for a while, longer each time, until a rank starts
//! there again. Failed starts of this kind use no retries.

use cohabit_types::{NodeId, RetryPolicy, Span};

use crate::alarm::Alarm;
use crate::node::NodeProblem;
use crate::transition::Transition;

/// How long a node gets no jobs.
const NODE_BACKOFF: RetryPolicy =
    RetryPolicy { limit: 0, backoff: Span::from_secs(1), backoff_cap: Span::from_secs(60) };

impl Transition<'_> {
    /// A rank could not start there. Ranks that were sent with it and fail as well change nothing.
    pub(crate) fn pause_node(&mut self, id: NodeId, message: &str) {
        let now = self.now;
        let Some(node) = self.node_mut(id).filter(|node| !node.is_paused()) else { return };
        let count = node.problem.as_ref().map_or(0, |problem| problem.count) + 1;
        let until = now + NODE_BACKOFF.pause(count);
        node.problem = Some(NodeProblem { message: message.to_owned(), count, paused_until: Some(until) });
        self.set_alarm(until, Alarm::NodeRetry(id));
    }

    /// Lets a node be tried again, if its pause is over.
    pub(crate) fn end_node_pause(&mut self, id: NodeId) {
        let now = self.now;
        let problem = self.node_mut(id).and_then(|node| node.problem.as_mut());
        if let Some(due) = problem.filter(|it| it.paused_until.is_some_and(|until| until <= now)) {
            due.paused_until = None;
            self.head.replan_needed = true;
        }
    }

    /// A rank started there, so the problem is over.
    pub(crate) fn clear_node_problem(&mut self, id: NodeId) {
        if self.head.nodes.get(&id).is_none_or(|node| node.problem.is_none()) {
            return;
        }
        if let Some(node) = self.node_mut(id) {
            node.problem = None;
            self.head.replan_needed = true;
        }
    }
}

//! Which of the simulated nodes.

/// A node, by its place among all. The first is that of the coordinator, and the head is always reached
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeIndex(pub(super) usize);

impl NodeIndex {
    pub(super) const FIRST: NodeIndex = NodeIndex(0);

    pub(super) fn name(self) -> String {
        format!("n{}", self.0)
    }
}

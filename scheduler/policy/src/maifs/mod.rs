//! MAIFS: the nodes are agents that choose jobs and their shares of cores and memory together.
//!
//! `observation.rs` is what the agents see, `action.rs` what they do, and `agents.rs` the trait of the
//! networks, which are in `cohabit-predict`. `joint_q.rs` makes one joint action of their values, with the
//! graph of `graph.rs`, the messages of `max_plus.rs` and the rule of `resolve.rs`. The README in this
//! directory says what is the paper's and where each property is tested.

mod action;
mod agents;
mod coordination;
mod features;
mod graph;
mod job_places;
mod joint_q;
mod max_plus;
mod observation;
mod payoffs;
mod policy;
mod resolve;
mod reward_baseline;
mod rewards;
mod round;
mod share_levels;
mod situation;
mod task_utilities;
mod teacher;
#[cfg(test)]
mod tests;
mod transition;
mod values;
mod waiting_window;

pub use action::{AgentAction, JointAction};
pub use agents::Agents;
pub use coordination::{Coordination, GraphKind, UnknownCoordination};
pub use features::INTERFERENCE_FEATURES;
pub use graph::coordinated_pairs;
pub use joint_q::{JointQ, ResolvedAction};
pub use observation::{JointObservation, ObservationShape, PAIR_FEATURES, SERVER_FEATURES, TASK_FEATURES};
pub(crate) use policy::Maifs;
pub use reward_baseline::RewardBaseline;
pub use share_levels::LEVELS;
pub use transition::JointTransition;
pub use values::JointValues;
pub use waiting_window::WINDOW;

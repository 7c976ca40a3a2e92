//! The networks of MAIFS: the agents of `cohabit_policy::maifs`, how they learn, and how they are stored.
//!
//! `networks.rs` holds the networks (section 5 of the specification) as tensors for training, `inference/`
//! the same in plain Rust for deciding. `learner.rs` trains them (section 8) from a `replay`, with the
//! `losses` of `joint_value.rs` and `imitation.rs`. `agents.rs` answers policies, and `stored_agents.rs`
//! keeps weights in a directory.
//!
//! # A training loop
//!
//! The loop owns the [`Learner`]; a policy owns agents. Episodes run elsewhere, in the simulator.
//!
//! ```no_run
//! # use std::collections::BTreeMap;
//! # use std::path::Path;
//! # use std::sync::Arc;
//! # use cohabit_policy::maifs::{Agents, JointTransition};
//! # use cohabit_predict::maifs::*;
//! # fn teacher_episode() -> Vec<JointTransition> { Vec::new() }
//! # fn episode(agents: Box<dyn Agents>) { drop(agents); }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The teacher's episodes give the scales of the features and the first lessons. `teacher` of a
//! // transition holds what the teacher did; `None` where its choice between equal nodes was arbitrary.
//! let taught: Vec<JointTransition> = (0..40).flat_map(|_| teacher_episode()).collect();
//! let observations: Vec<_> = taught.iter().map(|it| Arc::clone(&it.observation)).collect();
//! let settings = LearnerSettings::new(NetworkVariant::default(), 1);
//! let mut learner = Learner::new(settings, FeatureScales::fit(&observations))?;
//! for _epoch in 0..3 {
//!     learner.imitate(&taught)?;
//! }
//!
//! for at in 0..400 {
//!     learner.set_progress(f64::from(at) / 400.0);
//!     // In each sub-step the policy asks `values`, builds `JointQ`, takes its `best_action`, lets the
//!     // agents `explore` it, carries out what is left after `resolved`, and tells the transition to
//!     // `decided`, with the action before it was resolved.
//!     let (agents, transitions) = learner.exploring_agents();
//!     episode(Box::new(agents));
//!     // The weights stay the same during an episode; here is one update for each 12 sub-steps.
//!     for transition in transitions.try_iter() {
//!         learner.observe(transition)?;
//!     }
//!     // For validation: `episode(Box::new(learner.agents()))`. Keep `learner.trained()?` of the best.
//! }
//!
//! let training = AgentsTraining { episodes: 400, updates: learner.updates(), ..Default::default() };
//! let (command, validation) = ("cohabit policy train ..".to_owned(), BTreeMap::new());
//! let stored = StoredAgents::new(learner.trained()?, command, training, validation);
//! stored.save(Path::new("agents"))?;
//! let agents = StoredAgents::load(Path::new("agents"))?.agents()?;
//! # drop(agents);
//! # Ok(())
//! # }
//! ```
//!
//! Each learner runs on one thread: train several seeds on as many threads. With `RAYON_NUM_THREADS=1` in the
//! environment the tensor library does not read `/proc/cpuinfo` at every product of matrices. Variants to
//! compare with are fields of [`NetworkVariant`]. The README in this directory says where each property is
//! tested.

mod agents;
mod attention;
mod feature_scales;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod imitation;
mod inference;
mod joint_value;
mod layer_norm;
mod learner;
mod losses;
mod mlp;
mod networks;
mod observation_batch;
mod pair_head;
mod replay;
mod settings;
mod shape;
mod stored_agents;
#[cfg(test)]
mod tests;
mod trained_agents;

pub use agents::{ExploringAgents, NetworkAgents};
pub use feature_scales::FeatureScales;
pub use inference::WeightsError;
pub use learner::{Learner, LearnerError, UpdateLoss};
pub use settings::LearnerSettings;
pub use shape::{NetworkShape, NetworkVariant};
pub use stored_agents::{AgentsCard, AgentsStoreError, AgentsTraining, StoredAgents};
pub use trained_agents::TrainedAgents;

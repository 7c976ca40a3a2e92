//! Trained agents that simulations run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cohabit_console::CommandError;
use cohabit_predict::maifs::NetworkAgents;
use cohabit_sim::maifs::Agents;

use crate::policy::load_agents;

/// The agents of --agents, by their directories.
pub(super) struct LoadedAgents(BTreeMap<PathBuf, NetworkAgents>);

impl LoadedAgents {
    /// Loads the agents in these directories.
    pub(super) fn load(folders: &[PathBuf]) -> Result<LoadedAgents, CommandError> {
        let loaded = folders.iter().map(|folder| Ok((folder.clone(), load_agents(folder)?)));
        loaded.collect::<Result<_, CommandError>>().map(LoadedAgents)
    }

    /// The agents of one of these directories, for one run.
    pub(super) fn of(&self, folder: &Path) -> Box<dyn Agents> {
        Box::new(self.0[folder].clone())
    }
}

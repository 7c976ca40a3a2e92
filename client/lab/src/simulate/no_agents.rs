//! Replaces `agents.rs` in a program that was built without the feature `predict`.

use std::path::{Path, PathBuf};

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_sim::maifs::Agents;

/// No agents, or the refusal of some.
pub(super) struct LoadedAgents;

impl LoadedAgents {
    pub(super) fn load(folders: &[PathBuf]) -> Result<LoadedAgents, CommandError> {
        match folders.first() {
            None => Ok(LoadedAgents),
            Some(folder) => {
                let message = format!(
                    "cannot load the agents {}: this program was built without the feature `predict`",
                    folder.display()
                );
                Err(CommandError::new(CommandErrorKind::Usage, message))
            }
        }
    }

    pub(super) fn of(&self, folder: &Path) -> Box<dyn Agents> {
        unreachable!("{} was refused", folder.display())
    }
}

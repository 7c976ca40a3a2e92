//! What actors and tasks can know of their process.

use std::path::{Path, PathBuf};

use cohabit_types::{AttemptId, RankId};

use crate::process::MemberProcess;

/// The process that holds an actor or runs a task, as constructors, methods and tasks may ask for with a
/// parameter `&Context`.
#[derive(Debug, Clone)]
pub struct Context {
    incarnation: u32,
    member: RankId,
    checkpoints: Option<PathBuf>,
}

impl Context {
    pub(crate) fn new(incarnation: u32, process: &MemberProcess) -> Context {
        let checkpoints = process.checkpoints().map(Path::to_owned);
        Context { incarnation, member: process.access().member, checkpoints }
    }

    /// How often the actor has been constructed: 1 for the first time, then one more after each end of its
    /// process and each panic. Of a task it is 1: each attempt of a task is the first one of its process.
    #[must_use]
    pub const fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// The attempt of the job that the process is.
    #[must_use]
    pub const fn attempt(&self) -> AttemptId {
        self.member.attempt
    }

    /// The directory for checkpoints, which all incarnations of the actor share: save there in `stopping`,
    /// and look there in `new`. That of a task belongs to its process. Without a worker it is the working
    /// directory.
    #[must_use]
    pub fn checkpoint_folder(&self) -> &Path {
        self.checkpoints.as_deref().unwrap_or(Path::new("."))
    }
}

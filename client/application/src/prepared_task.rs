//! A call of a task before it is sent.

use bytes::Bytes;
use cohabit_application_core::{ActorId, TaskSpec, Ticket};

use crate::error::{Error, Result};
use crate::options::TaskOptions;
use crate::registry::TaskRegistry;
use crate::task::RegisteredTask;

/// A call of a task that was not sent yet.
pub(crate) struct PreparedTask {
    pub(crate) entry: &'static RegisteredTask,
    pub(crate) options: TaskOptions,
    pub(crate) arguments: Bytes,
    pub(crate) carries: Vec<ActorId>,
}

impl PreparedTask {
    /// What the core gets.
    ///
    /// # Errors
    /// If no job can claim what the task claims.
    pub(crate) fn describe(self, caller: Option<Ticket>) -> Result<TaskSpec> {
        let PreparedTask { entry, options, arguments, carries } = self;
        let registry = TaskRegistry::get();
        let function = registry.number_of(entry);
        let class = match options.claims == entry.options.claims {
            true => registry.class_of(function),
            false => options.class(),
        };
        let class = class.map_err(Error::Refused)?;
        let TaskOptions { retries, on_error, claims: _ } = options;
        Ok(TaskSpec { class, function, caller, retries, on_error, arguments, carries })
    }
}

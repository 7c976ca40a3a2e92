//! A call of a task before it is sent.

use std::sync::Arc;

use bytes::Bytes;
use cohabit_application_core::{ActorId, TaskSpec, Ticket};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::options::TaskOptions;
use crate::process::ActorHold;
use crate::registry::TaskRegistry;
use crate::task::RegisteredTask;
use crate::values::encode;

/// A call of a task that was not sent yet.
pub(crate) struct PreparedTask {
    pub(crate) entry: &'static RegisteredTask,
    pub(crate) options: TaskOptions,
    pub(crate) arguments: Bytes,
    pub(crate) carries: Vec<ActorId>,
}

impl PreparedTask {
    /// A call of this task with these arguments, a tuple, and the handles in them.
    ///
    /// # Errors
    /// In words, if they are too large or cannot be encoded.
    pub(crate) fn new<V: Serialize>(
        entry: &'static RegisteredTask,
        arguments: &V,
    ) -> Result<(PreparedTask, Vec<Arc<ActorHold>>), String> {
        let what = || format!("the arguments of {}", entry.origin.name);
        let encoded = encode(arguments, what)?;
        let (options, carries) = (entry.options, encoded.carries());
        Ok((PreparedTask { entry, options, arguments: encoded.bytes, carries }, encoded.holds))
    }

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

//! A call of a task before it is sent.

use std::sync::Arc;

use bytes::Bytes;
use cohabit_application_core::{HeldId, ObjectId, TaskSpec, Ticket};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::options::TaskOptions;
use crate::process::Hold;
use crate::registry::TaskRegistry;
use crate::task::RegisteredTask;
use crate::values::{EncodedArguments, encode_arguments};

/// A call of a task that was not sent yet.
pub(crate) struct PreparedTask {
    pub(crate) entry: &'static RegisteredTask,
    pub(crate) options: TaskOptions,
    pub(crate) arguments: Bytes,
    pub(crate) needs: Vec<ObjectId>,
}

impl PreparedTask {
    /// A call of this task with these arguments, a tuple, and the handles in them.
    ///
    /// # Errors
    /// In words, if they are too large or cannot be encoded.
    pub(crate) fn new<V: Serialize>(
        entry: &'static RegisteredTask,
        arguments: &V,
    ) -> Result<(PreparedTask, Vec<Arc<Hold>>), String> {
        let what = || format!("the arguments of {}", entry.origin.name);
        let EncodedArguments { value, needs } = encode_arguments(arguments, what)?;
        let task = PreparedTask { entry, options: entry.options, arguments: value.bytes, needs };
        Ok((task, value.holds))
    }

    /// What the core gets. `carries` are the handles in the arguments.
    ///
    /// # Errors
    /// If no job can claim what the task claims.
    pub(crate) fn describe(self, caller: Option<Ticket>, carries: Vec<HeldId>) -> Result<TaskSpec> {
        let PreparedTask { entry, options, arguments, needs } = self;
        let registry = TaskRegistry::get();
        let function = registry.number_of(entry);
        let class = match options.claims == entry.options.claims {
            true => registry.class_of(function),
            false => options.class(),
        };
        let class = class.map_err(Error::Refused)?;
        let TaskOptions { retries, on_error, claims: _ } = options;
        Ok(TaskSpec { class, function, caller, retries, on_error, arguments, needs, carries })
    }
}

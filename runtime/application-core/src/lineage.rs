//! How a lost object can be made again: by the task that made it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ids::ObjectId;
use crate::object_value::Carried;
use crate::task_class::TaskClass;

/// The task whose value an object is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// Where it can run.
    pub class: TaskClass,
    /// Index of the function in the registry of the binary.
    pub function: u32,
    /// Encoded arguments.
    pub arguments: Bytes,
    /// References in the arguments whose values the function gets.
    pub needs: Vec<ObjectId>,
    /// The handles in the arguments, once for each.
    pub carries: Vec<Carried>,
    /// How often it may run again.
    pub retries: u32,
}

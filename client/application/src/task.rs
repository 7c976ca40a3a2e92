//! A function with `#[cohabit::task]`, and what the attribute writes for it.

use std::fmt;

use cohabit_application_core::CallError;

use crate::arguments::CallArguments;
use crate::context::Context;
use crate::options::TaskOptions;
use crate::origin::{Origin, Registered};
use crate::returned::CallFuture;

/// A task of the program, as `#[cohabit::task]` writes it.
pub struct RegisteredTask {
    /// The function.
    pub origin: Origin,
    /// What its attribute says.
    pub options: TaskOptions,
    /// Decodes arguments, and runs the function.
    pub run: fn(&CallArguments, &Context) -> Result<CallFuture, CallError>,
}

/// The struct beside a function with `#[cohabit::task]`.
pub trait RemoteTask {
    /// The function.
    fn entry() -> &'static RegisteredTask;
}

impl Registered for RegisteredTask {
    const PLURAL: &'static str = "tasks";

    fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl fmt::Debug for RegisteredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.origin.fmt(f)
    }
}

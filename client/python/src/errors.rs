//! Errors as the exceptions of `cohabit.errors`, with the words of the command line.

use cohabit_console::CommandError;
use pyo3::prelude::*;

/// The exception of an error: Python knows which class has its code.
pub(crate) fn exception(error: CommandError) -> PyErr {
    Python::attach(|py| {
        let raised = py
            .import("cohabit.errors")
            .and_then(|errors| errors.call_method1("of", (error.kind.word(), error.message)));
        match raised {
            Ok(raised) => PyErr::from_value(raised),
            Err(import) => import,
        }
    })
}

//! The native half of the Python package `cohabit`: the Rust SDK, for Python.
//!
//! What is here speaks in texts: arguments go in as flags of the command line, records come out as the JSON
//! documents of `--output json`, and errors have the words of the command line. The classes that people use
//! are in `python/cohabit`. Each operation is a `NativeCall`, for which Python waits in a
//! thread or in an event loop of asyncio. Start reading with `client.rs`.

mod answer;
mod call;
mod client;
mod connecting;
mod errors;
mod reading;
mod stream;
mod submission;
mod watcher;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::call::NativeCall;
    #[pymodule_export]
    use crate::client::NativeClient;
    #[pymodule_export]
    use crate::stream::NativeStream;
    #[pymodule_export]
    use crate::watcher::NativeWatcher;
}

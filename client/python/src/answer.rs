//! What operations give to Python.

use std::os::fd::{IntoRawFd, OwnedFd};

use cohabit_client::types::LogStream;
use cohabit_console::CommandError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

/// The answer of an operation.
pub(crate) enum NativeAnswer {
    /// A document of JSON.
    Document(String),
    /// The contents of a file.
    Bytes(Vec<u8>),
    /// What was printed, and to which stream.
    Output(LogStream, Vec<u8>),
    /// A socket, which is Python's own from then on.
    Socket(OwnedFd),
    /// It was done, or no more comes.
    Done,
}

impl NativeAnswer {
    /// This as a document of JSON.
    pub(crate) fn document(document: &impl Serialize) -> Result<NativeAnswer, CommandError> {
        let text = serde_json::to_string(document)
            .map_err(|error| CommandError::internal(format!("a document cannot be written: {error}")))?;
        Ok(NativeAnswer::Document(text))
    }
}

impl<'py> IntoPyObject<'py> for NativeAnswer {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            NativeAnswer::Document(text) => text.into_pyobject(py)?.into_any(),
            NativeAnswer::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
            NativeAnswer::Output(stream, bytes) => {
                let stream = match stream {
                    LogStream::Stdout => "stdout",
                    LogStream::Stderr => "stderr",
                };
                (stream, PyBytes::new(py, &bytes)).into_pyobject(py)?.into_any()
            }
            NativeAnswer::Socket(socket) => socket.into_raw_fd().into_pyobject(py)?.into_any(),
            NativeAnswer::Done => py.None().into_bound(py),
        })
    }
}

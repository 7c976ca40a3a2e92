//! What operations give to Python.

use cohabit_client::types::LogStream;
use cohabit_console::CommandError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

/// The answer of an operation.
pub(crate) enum Answer {
    /// A document of JSON.
    Document(String),
    /// The contents of a file.
    Bytes(Vec<u8>),
    /// What was printed, and to which stream.
    Output(LogStream, Vec<u8>),
    /// It was done, or no more comes.
    Done,
}

impl Answer {
    /// This as a document of JSON.
    pub(crate) fn document(document: &impl Serialize) -> Result<Answer, CommandError> {
        let text = serde_json::to_string(document)
            .map_err(|error| CommandError::internal(format!("a document cannot be written: {error}")))?;
        Ok(Answer::Document(text))
    }
}

impl<'py> IntoPyObject<'py> for Answer {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Answer::Document(text) => text.into_pyobject(py)?.into_any(),
            Answer::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
            Answer::Output(stream, bytes) => {
                let stream = match stream {
                    LogStream::Stdout => "stdout",
                    LogStream::Stderr => "stderr",
                };
                (stream, PyBytes::new(py, &bytes)).into_pyobject(py)?.into_any()
            }
            Answer::Done => py.None().into_bound(py),
        })
    }
}

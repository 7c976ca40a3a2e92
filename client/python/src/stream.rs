//! What comes bit by bit: records, progress, output.

use std::sync::Arc;

use cohabit_console::CommandError;
use futures::stream::{BoxStream, StreamExt};
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::answer::NativeAnswer;
use crate::call::NativeCall;

/// What a stream has.
pub(crate) type Answers = BoxStream<'static, Result<NativeAnswer, CommandError>>;

/// A stream of answers. Nothing is asked for before Python wants the next one.
#[pyclass(frozen, name = "Stream", module = "cohabit._native")]
pub(crate) struct NativeStream {
    answers: Arc<Mutex<Answers>>,
}

impl NativeStream {
    pub(crate) fn new(answers: Answers) -> NativeStream {
        NativeStream { answers: Arc::new(Mutex::new(answers)) }
    }
}

#[pymethods]
impl NativeStream {
    /// The next answer; `None` after the last.
    fn next(&self) -> NativeCall {
        let answers = Arc::clone(&self.answers);
        NativeCall::new(async move { answers.lock().await.next().await.unwrap_or(Ok(NativeAnswer::Done)) })
    }
}

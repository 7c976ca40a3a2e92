//! What comes bit by bit: records, progress, output.

use std::sync::Arc;

use cohabit_console::CommandError;
use futures::stream::{BoxStream, StreamExt};
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::answer::Answer;
use crate::call::Call;

/// A stream of answers. Nothing is asked for before Python wants the next one.
#[pyclass(frozen, module = "cohabit._native")]
pub(crate) struct Stream {
    answers: Arc<Mutex<BoxStream<'static, Result<Answer, CommandError>>>>,
}

impl Stream {
    pub(crate) fn new(answers: BoxStream<'static, Result<Answer, CommandError>>) -> Stream {
        Stream { answers: Arc::new(Mutex::new(answers)) }
    }
}

#[pymethods]
impl Stream {
    /// The next answer; `None` after the last.
    fn next(&self) -> Call {
        let answers = Arc::clone(&self.answers);
        Call::new(async move { answers.lock().await.next().await.unwrap_or(Ok(Answer::Done)) })
    }
}

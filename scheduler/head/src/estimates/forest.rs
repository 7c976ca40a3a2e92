//! A random forest that is fitted on a thread of its own and used from the next estimate on.
//!
//! An estimate never waits: until a fit is done, the previous forest answers. At a start, which runs on a
//! blocking thread, the forest is fitted at once.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_predict::{FittedForest, Forest, ForestFit};
use cohabit_types::Estimate;

/// The forest, and the fit of the next one.
#[derive(Debug)]
pub(crate) struct EstimateSource {
    forest: Forest,
    fitting: Option<Receiver<FittedForest>>,
}

impl EstimateSource {
    pub(crate) fn learned_from(past: &[CompletedRun]) -> EstimateSource {
        let mut forest = Forest::default();
        forest.learn(past);
        EstimateSource { forest, fitting: None }
    }

    pub(crate) fn estimate(&mut self, job: &JobFeatures) -> Option<Estimate> {
        self.adopt_fit();
        self.forest.estimate(job)
    }

    pub(crate) fn learn(&mut self, done: &[CompletedRun]) {
        self.forest.remember(done);
        self.adopt_fit();
        if self.fitting.is_none() {
            self.start_fit();
        }
    }

    /// Starts a fit, if one is due.
    fn start_fit(&mut self) {
        let Some(training) = self.forest.training() else { return };
        match fit_on_thread(training) {
            Ok(fitting) => self.fitting = Some(fitting),
            Err(error) => {
                tracing::warn!(%error, "the estimator is not fitted again: no thread could be started")
            }
        }
    }

    /// Uses a fit that is done.
    fn adopt_fit(&mut self) {
        match self.fitting.as_ref().map(Receiver::try_recv) {
            Some(Ok(fitted)) => {
                self.fitting = None;
                self.forest.adopt(fitted);
            }
            Some(Err(TryRecvError::Disconnected)) => {
                self.fitting = None;
                tracing::error!("the estimator was not fitted again: the fit panicked");
            }
            Some(Err(TryRecvError::Empty)) | None => {}
        }
    }

    #[cfg(test)]
    pub(super) fn is_fitting(&self) -> bool {
        self.fitting.is_some()
    }

    /// Waits for the running fit.
    #[cfg(test)]
    pub(super) fn wait(&mut self) {
        if let Some(fitting) = self.fitting.take() {
            self.forest.adopt(fitting.recv().expect("the fit ends"));
        }
    }
}

/// The thread ends by itself.
fn fit_on_thread(training: ForestFit) -> io::Result<Receiver<FittedForest>> {
    let (done, fitting) = channel();
    let fit = move || {
        // A head that has ended needs no forest.
        let _ = done.send(training.fit());
    };
    std::thread::Builder::new().name("estimates".to_owned()).spawn(fit)?;
    Ok(fitting)
}

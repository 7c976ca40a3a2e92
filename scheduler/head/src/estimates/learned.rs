//! The forest of a live head: it is fitted on a thread of its own and taken into use when it is next asked.
//!
//! Whoever asks never waits: until a fit is done, the forest before it answers. At a start, where nobody
//! waits yet, it is fitted at once.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_predict::{FittedForest, Forest, ForestFit};
use cohabit_types::Estimate;

/// The forest, and the next one.
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
        self.adopt();
        self.forest.estimate(job)
    }

    pub(crate) fn learn(&mut self, done: &[CompletedRun]) {
        self.forest.remember(done);
        self.adopt();
        if self.fitting.is_none() {
            self.begin();
        }
    }

    /// Starts a fit, if one is due.
    fn begin(&mut self) {
        let Some(training) = self.forest.training() else { return };
        match fit_on_thread(training) {
            Ok(fitting) => self.fitting = Some(fitting),
            Err(error) => {
                tracing::warn!(%error, "estimates are not learned anew: no thread could be started")
            }
        }
    }

    /// Takes a fit that is done into use.
    fn adopt(&mut self) {
        match self.fitting.as_ref().map(Receiver::try_recv) {
            Some(Ok(fitted)) => {
                self.fitting = None;
                self.forest.adopt(fitted);
            }
            Some(Err(TryRecvError::Disconnected)) => {
                self.fitting = None;
                tracing::error!("estimates were not learned anew: the thread that was to do it panicked");
            }
            Some(Err(TryRecvError::Empty)) | None => {}
        }
    }

    #[cfg(test)]
    pub(super) fn is_fitting(&self) -> bool {
        self.fitting.is_some()
    }

    /// Waits for the fit that is under way.
    #[cfg(test)]
    pub(super) fn wait(&mut self) {
        if let Some(fitting) = self.fitting.take() {
            self.forest.adopt(fitting.recv().expect("the fit ends"));
        }
    }
}

/// The thread ends by itself, and nobody waits for it.
fn fit_on_thread(training: ForestFit) -> io::Result<Receiver<FittedForest>> {
    let (done, fitting) = channel();
    let fit = move || {
        // A head that has ended wants no forest.
        let _ = done.send(training.fit());
    };
    std::thread::Builder::new().name("estimates".to_owned()).spawn(fit)?;
    Ok(fitting)
}

//! Runs tensor work on a single thread.
//!
//! The networks are so small that a second thread only adds overhead, and the tensor library uses all cores
//! otherwise.

use std::sync::{LazyLock, mpsc};
use std::thread;

use crate::interference::model::Epoch;

/// Runs `work` on a thread with a pool of its own; `watch` is called on the calling thread. Blocks until it
/// is done.
pub(super) fn run_single_threaded<T: Send>(
    watch: &mut dyn FnMut(&Epoch),
    work: impl FnOnce(&mut dyn FnMut(&Epoch)) -> T + Send,
) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // Without a pool of its own, the work runs on the common one.
            let _pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            // Sending fails only if the receiving thread has panicked.
            work(&mut |epoch| sender.send(*epoch).unwrap_or_default())
        });
        receiver.iter().for_each(|epoch| watch(&epoch));
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs a prediction on one thread that all callers share, or on the common pool if it could not be made.
pub(super) fn predict_single_threaded<T: Send>(answer: impl FnOnce() -> T + Send) -> T {
    static ONE: LazyLock<Option<rayon::ThreadPool>> =
        LazyLock::new(|| rayon::ThreadPoolBuilder::new().num_threads(1).build().ok());
    match &*ONE {
        Some(one) => one.install(answer),
        None => answer(),
    }
}

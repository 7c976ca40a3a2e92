//! Work on a thread of its own, whose tensors keep to it.
//!
//! Networks are so small that a second thread only costs. The library of tensors takes all cores otherwise.

use std::sync::{LazyLock, mpsc};
use std::thread;

use crate::interference::model::Epoch;

/// Does the work there; whoever watches is told here.
pub(super) fn run_single_threaded<T: Send>(
    watch: &mut dyn FnMut(&Epoch),
    work: impl FnOnce(&mut dyn FnMut(&Epoch)) -> T + Send,
) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // Where a pool cannot be made, the work is as good on the common one.
            let _pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            // Nobody listens any more only when the watcher panicked.
            work(&mut |epoch| sender.send(*epoch).unwrap_or_default())
        });
        receiver.iter().for_each(|epoch| watch(&epoch));
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Answers there, on a thread that all who ask share; where none can be made, on the common ones.
pub(super) fn predict_single_threaded<T: Send>(answer: impl FnOnce() -> T + Send) -> T {
    static ONE: LazyLock<Option<rayon::ThreadPool>> =
        LazyLock::new(|| rayon::ThreadPoolBuilder::new().num_threads(1).build().ok());
    match &*ONE {
        Some(one) => one.install(answer),
        None => answer(),
    }
}

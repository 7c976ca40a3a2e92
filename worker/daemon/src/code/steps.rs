//! Work on the copies of code, in the order in which it was ordered: a copy that is removed and made again is
//! not removed while it is being made.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::AttemptId;
use tokio::sync::RwLock;
use tokio::task::JoinHandle;

/// The work on copies that has begun.
#[derive(Debug, Default)]
pub(crate) struct CopySteps {
    /// The last step on the copy of each owner.
    last: BTreeMap<AttemptId, JoinHandle<()>>,
    /// Held for writing while what earlier daemons left is removed, whosever it is.
    removal: Arc<RwLock<()>>,
}

impl CopySteps {
    /// Begins the removal of what earlier daemons left. Every step that is begun later waits for it.
    pub(crate) fn begin_removal(&self, work: impl Future<Output = ()> + Send + 'static) {
        // No step has begun before, so nobody else holds the lock.
        let held = Arc::clone(&self.removal).try_write_owned();
        tokio::spawn(async move {
            work.await;
            drop(held);
        });
    }

    /// Does this to the copy of `owner` after all that was begun before.
    pub(crate) fn begin(&mut self, owner: AttemptId, work: impl Future<Output = ()> + Send + 'static) {
        self.last.retain(|_, step| !step.is_finished());
        let (before, removal) = (self.last.remove(&owner), Arc::clone(&self.removal));
        let step = tokio::spawn(async move {
            drop(removal.read().await);
            if let Some(before) = before {
                // Whether it panicked or not, it does nothing more.
                let _ = before.await;
            }
            work.await;
        });
        self.last.insert(owner, step);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cohabit_types::JobId;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn steps_on_one_copy_follow_each_other_and_the_removal_of_what_was_left() {
        let done = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str, after: Option<oneshot::Receiver<()>>| {
            let done = Arc::clone(&done);
            async move {
                if let Some(after) = after {
                    after.await.unwrap();
                }
                done.lock().unwrap().push(what);
            }
        };
        let (removed, wait_for_removal) = oneshot::channel();
        let (released, wait_for_release) = oneshot::channel();
        let (finished, wait_for_end) = oneshot::channel();
        let mut steps = CopySteps::default();
        steps.begin_removal(note("removed", Some(wait_for_removal)));
        let owner = JobId::new(1).attempt(1);
        steps.begin(owner, note("released", Some(wait_for_release)));
        let last = note("made", None);
        steps.begin(owner, async move {
            last.await;
            finished.send(()).unwrap();
        });
        released.send(()).unwrap();
        tokio::task::yield_now().await;
        removed.send(()).unwrap();
        wait_for_end.await.unwrap();
        assert_eq!(*done.lock().unwrap(), ["removed", "released", "made"]);
    }
}

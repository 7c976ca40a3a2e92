//! Who waits for a job to change: each watcher has one bell, hung up at every job that it watches.
//!
//! A watcher hangs up its bell first and looks at the jobs then, so that no change is missed. Nothing is said
//! about what changed: the watcher looks again.

use std::sync::Arc;

use cohabit_types::JobId;
use dashmap::DashMap;
use tokio::sync::Notify;

/// All bells, by job; cheap to clone.
#[derive(Debug, Default, Clone)]
pub(crate) struct Watchers(Arc<DashMap<JobId, Vec<Arc<Notify>>>>);

/// A bell at some jobs; taken down when dropped.
#[derive(Debug)]
pub(crate) struct WatchGuard {
    watchers: Watchers,
    jobs: Vec<JobId>,
    notifier: Arc<Notify>,
}

impl Watchers {
    /// Hangs a bell up at each of these jobs.
    pub(crate) fn watch(&self, jobs: Vec<JobId>) -> WatchGuard {
        let notifier = Arc::new(Notify::new());
        for job in &jobs {
            self.0.entry(*job).or_default().push(Arc::clone(&notifier));
        }
        WatchGuard { watchers: self.clone(), jobs, notifier }
    }

    /// Rings every bell at this job.
    pub(crate) fn notify(&self, job: JobId) {
        if let Some(notifiers) = self.0.get(&job) {
            notifiers.iter().for_each(|notifier| notifier.notify_one());
        }
    }
}

impl WatchGuard {
    /// Waits for a ring; one since the last wait counts.
    pub(crate) async fn changed(&self) {
        self.notifier.notified().await;
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        for job in &self.jobs {
            self.watchers.0.remove_if_mut(job, |_, notifiers| {
                notifiers.retain(|notifier| !Arc::ptr_eq(notifier, &self.notifier));
                notifiers.is_empty()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn only_the_watched_jobs_ring_and_a_ring_before_the_wait_counts() {
        let watchers = Watchers::default();
        let watch = watchers.watch(vec![JobId::new(1), JobId::new(2)]);
        watchers.notify(JobId::new(3));
        assert!(watch.changed().now_or_never().is_none());
        watchers.notify(JobId::new(2));
        assert!(watch.changed().now_or_never().is_some());
        assert!(watch.changed().now_or_never().is_none());
    }

    #[test]
    fn every_watcher_of_a_job_hears_it_and_none_is_left_behind() {
        let watchers = Watchers::default();
        let (first, second) = (watchers.watch(vec![JobId::new(1)]), watchers.watch(vec![JobId::new(1)]));
        watchers.notify(JobId::new(1));
        assert!(first.changed().now_or_never().is_some() && second.changed().now_or_never().is_some());
        drop((first, second));
        assert!(watchers.0.is_empty());
    }
}

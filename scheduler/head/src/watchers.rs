//! Notifies the clients that wait for a job to change.
//!
//! A watcher registers first and reads the jobs afterwards, so that it misses no change. A notification
//! does not say what changed: the watcher reads the jobs again. The map is concurrent because sessions
//! register from their own tasks while the driver notifies.

use std::sync::Arc;

use cohabit_types::JobId;
use dashmap::DashMap;
use tokio::sync::Notify;

/// The watchers of each job; cheap to clone.
#[derive(Debug, Default, Clone)]
pub(crate) struct Watchers(Arc<DashMap<JobId, Vec<Arc<Notify>>>>);

/// A registration for some jobs, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct WatchGuard {
    watchers: Watchers,
    jobs: Vec<JobId>,
    notifier: Arc<Notify>,
}

impl Watchers {
    /// Registers a watcher for these jobs.
    pub(crate) fn watch(&self, jobs: Vec<JobId>) -> WatchGuard {
        let notifier = Arc::new(Notify::new());
        for job in &jobs {
            self.0.entry(*job).or_default().push(Arc::clone(&notifier));
        }
        WatchGuard { watchers: self.clone(), jobs, notifier }
    }

    /// Notifies every watcher of this job.
    pub(crate) fn notify(&self, job: JobId) {
        if let Some(notifiers) = self.0.get(&job) {
            notifiers.iter().for_each(|notifier| notifier.notify_one());
        }
    }
}

impl WatchGuard {
    /// Waits for a notification; one since the last wait counts.
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
    fn only_watched_jobs_notify_and_a_notification_before_the_wait_counts() {
        let watchers = Watchers::default();
        let watch = watchers.watch(vec![JobId::new(1), JobId::new(2)]);
        watchers.notify(JobId::new(3));
        assert!(watch.changed().now_or_never().is_none());
        watchers.notify(JobId::new(2));
        assert!(watch.changed().now_or_never().is_some());
        assert!(watch.changed().now_or_never().is_none());
    }

    #[test]
    fn every_watcher_of_a_job_is_notified_and_removed() {
        let watchers = Watchers::default();
        let (first, second) = (watchers.watch(vec![JobId::new(1)]), watchers.watch(vec![JobId::new(1)]));
        watchers.notify(JobId::new(1));
        assert!(first.changed().now_or_never().is_some() && second.changed().now_or_never().is_some());
        drop((first, second));
        assert!(watchers.0.is_empty());
    }
}

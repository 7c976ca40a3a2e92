//! Waits for blocking work on an MPS daemon for a limited time.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Runs `work` on a blocking thread. If it takes longer than `limit`, or the caller does not wait any more,
/// its result goes to `late`.
///
/// # Errors
/// When the work was not done in time or panicked, as a text for people.
pub(crate) async fn run_with_timeout<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
    late: impl FnOnce(T) + Send + 'static,
) -> Result<T, String> {
    let (sender, done) = oneshot::channel();
    spawn_blocking(move || {
        if let Err(done) = sender.send(work()) {
            late(done);
        }
    });
    match timeout(limit, done).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err("the work on the MPS daemon failed: see the worker's log".to_owned()),
        Err(_) => Err(format!("the MPS daemon did not respond within {} s", limit.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn a_late_result_goes_to_the_late_handler() {
        let (release, released) = channel::<()>();
        let (sender, results) = channel();
        let work = move || released.recv().map_or("never", |()| "late");
        let done = run_with_timeout(Duration::ZERO, work, move |late| sender.send(late).unwrap()).await;
        assert!(done.unwrap_err().contains("did not respond"));
        release.send(()).unwrap();
        assert_eq!(results.recv().unwrap(), "late");
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        let done = run_with_timeout(Duration::from_secs(60), || panic!("as it must"), |()| {}).await;
        assert!(done.unwrap_err().contains("failed"));
    }
}

//! Waits for work on an MPS daemon, which waits for other processes, no longer than for a limited time.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Does this off the runtime. If it is not done within the limit, or nobody waits for it any more, what comes
/// of it is given to `late`.
///
/// # Errors
/// That it is not done, in words.
pub(crate) async fn within<T: Send + 'static>(
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
        Ok(Err(_)) => Err("the work on the MPS daemon was cut short: see the worker's log".to_owned()),
        Err(_) => Err(format!("the MPS daemon was not heard of for {} s", limit.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn what_comes_too_late_is_given_away() {
        let (release, released) = channel::<()>();
        let (giver, given) = channel();
        let work = move || released.recv().map_or("never", |()| "late");
        let done = within(Duration::ZERO, work, move |late| giver.send(late).unwrap()).await;
        assert!(done.unwrap_err().contains("not heard of"));
        release.send(()).unwrap();
        assert_eq!(given.recv().unwrap(), "late");
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error() {
        let done = within(Duration::from_secs(60), || panic!("as it must"), |()| {}).await;
        assert!(done.unwrap_err().contains("cut short"));
    }
}

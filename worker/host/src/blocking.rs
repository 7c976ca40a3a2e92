//! Runs work that waits for the disk, for `/proc` or for the name service on a blocking thread, so that no
//! thread of the async runtime waits with it.

use std::panic::resume_unwind;

use tokio::task::spawn_blocking;

/// Runs `work` on a blocking thread and returns its result. A panic in `work` continues in the caller.
///
/// # Panics
/// When `work` does, or when the runtime shuts down before it could start.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(cancelled) => panic!("the runtime ended before blocking work could start: {cancelled}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_result_comes_back() {
        assert_eq!(run(|| 7).await, 7);
    }

    #[tokio::test]
    #[should_panic(expected = "in the work")]
    async fn a_panic_continues_in_the_caller() {
        run(|| panic!("in the work")).await;
    }
}

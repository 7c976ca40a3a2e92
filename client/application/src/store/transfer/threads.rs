//! The threads that carry what goes between nodes.

use std::cell::OnceCell;
use std::future::Future;
use std::io;
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;

/// One thread encrypts, decrypts and copies 1 to 2 GB/s, and fast networks carry more.
const MOST_THREADS: usize = 4;

/// They are started when something is carried for the first time.
#[derive(Debug, Default)]
pub(in crate::store) struct TransferThreads(OnceCell<Runtime>);

impl TransferThreads {
    /// # Errors
    /// If the system gives no thread.
    pub(in crate::store) fn handle(&self) -> io::Result<&Handle> {
        if let Some(runtime) = self.0.get() {
            return Ok(runtime.handle());
        }
        let threads = available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(threads).thread_name("cohabit-transfer").enable_all().build()?;
        Ok(self.0.get_or_init(|| runtime).handle())
    }
}

impl Drop for TransferThreads {
    fn drop(&mut self) {
        // Where the store ends, nothing may wait for its threads.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Carries something on these threads. Dropping the future ends it.
///
/// # Errors
/// If it panics.
pub(super) async fn carry<T: Send + 'static>(
    threads: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let mut carried = JoinSet::new();
    carried.spawn_on(work, threads);
    let ended = carried.join_next().await.ok_or_else(|| io::Error::other("nothing was carried"))?;
    ended.map_err(io::Error::other)
}

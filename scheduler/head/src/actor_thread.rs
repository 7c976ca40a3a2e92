//! An actor on a thread of its own, for work that blocks or computes for long. It has an address like any
//! other actor; it is not supervised and not restarted.

use std::io;
use std::thread::JoinHandle;

use cohabit_actor::{Address, Mailbox, mailbox};
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::Fuse;
use tokio::sync::oneshot;

/// A thread that handles the messages of an address. Dropping this asks it to finish, without waiting.
#[derive(Debug)]
pub(crate) struct ActorThread {
    _stop: oneshot::Sender<()>,
    handle: JoinHandle<()>,
}

/// The thread's end of its mailbox.
pub(crate) struct Inbox<M> {
    mailbox: Mailbox<M>,
    stop: Fuse<oneshot::Receiver<()>>,
}

/// Runs `body` on a new thread, with a mailbox that holds `capacity` messages.
pub(crate) fn spawn<M: Send + 'static>(
    name: &str,
    capacity: usize,
    body: impl FnOnce(Inbox<M>) + Send + 'static,
) -> io::Result<(Address<M>, ActorThread)> {
    let (address, mailbox) = mailbox(capacity);
    let (stop, stopped) = oneshot::channel();
    let inbox = Inbox { mailbox, stop: stopped.fuse() };
    let handle = std::thread::Builder::new().name(name.to_owned()).spawn(move || body(inbox))?;
    Ok((address, ActorThread { _stop: stop, handle }))
}

impl ActorThread {
    /// Asks the thread to finish what is in its mailbox, and blocks until it has ended.
    pub(crate) fn join(self) {
        drop(self._stop);
        // A panic of the thread has been printed, and those who waited for its replies have an error.
        let _ = self.handle.join();
    }
}

impl<M> Inbox<M> {
    /// Blocks until the next message; `None` when no more will come.
    pub(crate) fn next(&mut self) -> Option<M> {
        block_on(async {
            tokio::select! {
                biased;
                message = self.mailbox.receive() => return message,
                _ = &mut self.stop => {}
            }
            self.mailbox.close();
            self.mailbox.receive().await
        })
    }

    /// The next message, if one is queued now.
    pub(crate) fn next_queued(&mut self) -> Option<M> {
        self.mailbox.receive().now_or_never().flatten()
    }
}

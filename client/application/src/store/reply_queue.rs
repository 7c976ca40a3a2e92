//! Replies on their way to one process.

use std::cell::RefCell;
use std::collections::VecDeque;

use cohabit_application_core::StoreReply;
use tokio::sync::Notify;

/// As long as so many replies are unsent, the process is not listened to.
const MOST_UNSENT: usize = 256;

/// Replies in order, for one sender.
#[derive(Debug, Default)]
pub(super) struct ReplyQueue {
    replies: RefCell<VecDeque<StoreReply>>,
    added: Notify,
    taken: Notify,
}

impl ReplyQueue {
    pub(super) fn push(&self, reply: StoreReply) {
        self.replies.borrow_mut().push_back(reply);
        self.added.notify_one();
    }

    /// The next reply.
    pub(super) async fn next(&self) -> StoreReply {
        loop {
            if let Some(reply) = self.replies.borrow_mut().pop_front() {
                self.taken.notify_one();
                return reply;
            }
            self.added.notified().await;
        }
    }

    /// Waits until few enough are unsent.
    pub(super) async fn has_room(&self) {
        while self.replies.borrow().len() >= MOST_UNSENT {
            self.taken.notified().await;
        }
    }
}

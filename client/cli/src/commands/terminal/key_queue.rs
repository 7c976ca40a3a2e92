//! Keys on their way from the person to the job. They wait while the head or the worker is away.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How many bytes may wait before no more are read.
const MOST_WAITING: usize = 1 << 20;

/// The keys that wait.
#[derive(Debug, Default)]
pub(super) struct KeyQueue {
    waiting: Mutex<VecDeque<u8>>,
    /// The attempt whose output the person sees, once there is some.
    shown: AtomicU32,
    /// There are keys, or the window has another size.
    news: Notify,
    /// There is room.
    room: Notify,
}

impl KeyQueue {
    /// Adds keys; waits until there is room.
    pub(super) async fn push(&self, keys: &[u8]) {
        while self.waiting().len() > MOST_WAITING {
            self.room.notified().await;
        }
        self.waiting().extend(keys);
        self.news.notify_one();
    }

    /// The person sees output of this attempt: keys from now on are meant for it, and those that still wait
    /// were meant for the one before. Returns whether there was one.
    pub(super) fn show(&self, attempt: u32) -> bool {
        let before = self.shown.fetch_max(attempt, Ordering::Relaxed);
        let is_next = before != 0 && before < attempt;
        if is_next {
            self.clear();
        }
        if before < attempt {
            self.wake();
        }
        is_next
    }

    /// The attempt whose output the person sees; 0 before there is some.
    pub(super) fn shown(&self) -> u32 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Says that there is something to send although there are no keys.
    pub(super) fn wake(&self) {
        self.news.notify_one();
    }

    /// The first keys, at most so many.
    pub(super) fn first(&self, most: usize) -> Vec<u8> {
        self.waiting().iter().take(most).copied().collect()
    }

    /// Forgets the first keys.
    pub(super) fn forget(&self, count: usize) {
        let mut waiting = self.waiting();
        let count = count.min(waiting.len());
        waiting.drain(..count);
        self.room.notify_one();
    }

    /// Forgets all keys.
    pub(super) fn clear(&self) {
        self.forget(usize::MAX);
    }

    /// Waits until there is something to send.
    pub(super) async fn news(&self) {
        if self.waiting().is_empty() {
            self.news.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn keys_leave_in_their_order_once_they_are_forgotten() {
        let queue = KeyQueue::default();
        queue.push(b"abc").now_or_never().unwrap();
        assert_eq!(queue.first(2), b"ab");
        queue.forget(2);
        assert_eq!(queue.first(9), b"c");
        queue.clear();
        assert!(queue.first(9).is_empty());
    }

    #[test]
    fn no_more_is_read_while_much_waits() {
        let queue = KeyQueue::default();
        queue.push(&vec![0; MOST_WAITING + 1]).now_or_never().unwrap();
        let mut next = Box::pin(queue.push(b"x"));
        assert!(next.as_mut().now_or_never().is_none());
        queue.forget(1);
        assert!(next.now_or_never().is_some());
    }

    #[test]
    fn keys_are_meant_for_the_attempt_that_is_shown() {
        let queue = KeyQueue::default();
        queue.push(b"a").now_or_never().unwrap();
        assert!(!queue.show(2));
        assert_eq!((queue.first(9), queue.shown()), (b"a".to_vec(), 2));
        assert!(queue.show(3));
        queue.push(b"b").now_or_never().unwrap();
        assert!(!queue.show(3));
        assert_eq!((queue.first(9), queue.shown()), (b"b".to_vec(), 3));
    }

    #[test]
    fn another_size_of_the_window_is_news_without_keys() {
        let queue = KeyQueue::default();
        assert!(queue.news().now_or_never().is_none());
        queue.wake();
        assert!(queue.news().now_or_never().is_some());
    }
}

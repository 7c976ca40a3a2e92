//! Blocking work: its result and its panic reach the caller, and async tasks run meanwhile.

use crate::blocking;
use std::sync::mpsc::channel;

#[tokio::test]
async fn other_tasks_run_while_the_work_blocks() {
    let (sender, receiver) = channel();
    let work = blocking(move || receiver.recv());
    let unblock = async move { sender.send(7) };
    let (received, sent) = futures::join!(work, unblock);
    assert_eq!((received, sent), (Ok(7), Ok(())));
}

#[tokio::test]
#[should_panic(expected = "the disk is gone")]
async fn a_panic_of_the_work_reaches_the_caller() {
    blocking(|| panic!("the disk is gone")).await;
}

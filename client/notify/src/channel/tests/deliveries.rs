//! Deliveries in order, again after failures, and given up after a day.

use cohabit_client::types::FeedGap;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::kit::{Desk, Receiver, ReceiverAnswer, cursor};
use crate::message::samples::{entry, node_lost};

#[tokio::test(start_paused = true)]
async fn what_happens_is_delivered_in_order_and_noted() {
    let (desk, receiver) = (Desk::new(), Receiver::start([]).await);
    let state = desk.begin(&["hook"]);
    desk.feed.add(7);
    let running = desk.run(&state, Desk::webhook("hook", receiver.port));
    assert_eq!(receiver.requests(7).await, ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(receiver.last_body()["title"], "Job 7 train failed");
    desk.stop();
    running.await.unwrap();
    assert_eq!(state.channel("hook").unwrap().cursor(), cursor(7));
}

#[tokio::test(start_paused = true)]
async fn a_new_channel_begins_with_what_happens_from_now_on() {
    let (desk, receiver) = (Desk::new(), Receiver::start([]).await);
    let state = desk.state();
    desk.feed.add(3);
    let _running = desk.run(&state, Desk::webhook("hook", receiver.port));
    while state.channel("hook").is_none() {
        tokio::task::yield_now().await;
    }
    desk.feed.add(1);
    assert_eq!(receiver.requests(1).await, ["4"]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_is_tried_again_and_order_is_kept() {
    let failures = [
        ReceiverAnswer::Status(500),
        ReceiverAnswer::Busy(429, 7),
        ReceiverAnswer::Status(408),
        ReceiverAnswer::Status(302),
    ];
    let (desk, receiver) = (Desk::new(), Receiver::start(failures).await);
    let state = desk.begin(&["hook"]);
    desk.feed.add(2);
    let start = tokio::time::Instant::now();
    let _running = desk.run(&state, Desk::webhook("hook", receiver.port));
    assert_eq!(receiver.requests(6).await, ["1", "1", "1", "1", "1", "2"]);
    // 1 s, then the 7 s that the receiver asks for, 4 s and 8 s.
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_refused_is_given_up_and_the_next_one_goes() {
    let (desk, receiver) = (Desk::new(), Receiver::start([ReceiverAnswer::Status(400)]).await);
    let state = desk.begin(&["hook"]);
    desk.feed.add(2);
    let _running = desk.run(&state, Desk::webhook("hook", receiver.port));
    assert_eq!(receiver.requests(2).await, ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_takes_nothing_for_a_day_loses_the_message() {
    let (desk, receiver) = (Desk::new(), Receiver::always(503).await);
    let state = desk.begin(&["hook"]);
    desk.feed.add(2);
    let start = tokio::time::Instant::now();
    let _running = desk.run(&state, Desk::webhook("hook", receiver.port));
    let keys = receiver.key("2").await;
    let hours = start.elapsed().as_secs() / 3_600;
    assert!((24..=25).contains(&hours) && keys.len() < 50, "{hours} h, {} attempts", keys.len());
    assert_eq!(state.channel("hook").unwrap().cursor(), cursor(1));
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_is_down_holds_up_no_other() {
    let (desk, receiver) = (Desk::new(), Receiver::start([]).await);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let state = desk.begin(&["down", "hook"]);
    desk.feed.add(5);
    let _down = desk.run(&state, Desk::webhook("down", closed));
    let _running = desk.run(&state, Desk::webhook("hook", receiver.port));
    assert_eq!(receiver.requests(5).await, ["1", "2", "3", "4", "5"]);
    assert_eq!(state.channel("down").unwrap().cursor().number, 0);
}

/// The answer of the second attempt comes, for the first link was cut.
#[tokio::test(start_paused = true)]
async fn a_link_that_is_cut_or_silent_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (desk, port) = (Desk::new(), listener.local_addr().unwrap().port());
    let state = desk.begin(&["hook"]);
    desk.feed.add(1);
    let _running = desk.run(&state, Desk::webhook("hook", port));
    // Cut at once, cut within the request, and silent until the limit of the attempt.
    drop(listener.accept().await.unwrap());
    let (mut within, _) = listener.accept().await.unwrap();
    within.read_exact(&mut [0; 20]).await.unwrap();
    drop(within);
    let (silent, _) = listener.accept().await.unwrap();
    let (mut last, _) = listener.accept().await.unwrap();
    let mut begin = [0; 10];
    last.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"POST /hook");
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn missed_entries_are_told_once_and_an_entry_without_a_user_goes_to_all() {
    let (desk, receiver) = (Desk::new(), Receiver::start([]).await);
    let state = desk.begin(&["hook"]);
    *desk.feed.gap.lock().unwrap() = FeedGap::Entries(12);
    desk.feed.add_entry(entry(1, node_lost()));
    let running = desk.run(&state, Desk::webhook("hook", receiver.port));
    let keys = receiver.requests(2).await;
    assert!(keys[0].starts_with("gap-1-") && keys[1] == "1", "{keys:?}");
    assert_eq!(receiver.last_body()["title"], "Node box is lost");
    desk.stop();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_pause_before_the_next_attempt() {
    let (desk, receiver) = (Desk::new(), Receiver::always(503).await);
    let state = desk.begin(&["hook"]);
    desk.feed.add(1);
    let running = desk.run(&state, Desk::webhook("hook", receiver.port));
    receiver.requests(3).await;
    desk.stop();
    running.await.unwrap();
    assert_eq!(state.channel("hook").unwrap().cursor().number, 0, "the next start tells of it");
}

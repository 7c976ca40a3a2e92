//! More messages a minute than a recipient wants come as one.

use super::kit::{Desk, Receiver, cursor};
use crate::config::ChannelConfig;

fn channel(port: u16) -> ChannelConfig {
    ChannelConfig { most_per_minute: 4, ..Desk::webhook("hook", port) }
}

#[tokio::test(start_paused = true)]
async fn beyond_the_number_a_minute_entries_come_as_one_message() {
    let (desk, receiver) = (Desk::new(), Receiver::start([]).await);
    let state = desk.begin(&["hook"]);
    desk.feed.add(10);
    let start = tokio::time::Instant::now();
    let running = desk.run(&state, channel(receiver.port));
    assert_eq!(receiver.requests(5).await, ["1", "2", "3", "4", "5-10"]);
    assert!((59..=61).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert_eq!(receiver.last_body()["title"], "6 events: 6 fail");
    assert_eq!(receiver.last_body()["entries"].as_array().unwrap().len(), 6);
    desk.stop();
    running.await.unwrap();
    assert_eq!(state.channel("hook").unwrap().cursor(), cursor(10));
}

#[tokio::test(start_paused = true)]
async fn what_was_held_back_is_told_after_a_restart() {
    let (desk, receiver) = (Desk::new(), Receiver::start([]).await);
    let state = desk.begin(&["hook"]);
    desk.feed.add(6);
    let running = desk.run(&state, channel(receiver.port));
    receiver.requests(4).await;
    while desk_cursor(&state) < 4 {
        tokio::task::yield_now().await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    drop(state);
    let state = desk.state();
    let _running = desk.run(&state, channel(receiver.port));
    assert_eq!(receiver.requests(6).await, ["1", "2", "3", "4", "5", "6"]);
}

fn desk_cursor(state: &crate::state_file::StateFile) -> u64 {
    state.channel("hook").unwrap().cursor().number
}

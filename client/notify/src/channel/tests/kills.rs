//! A kill at any point loses nothing, and repeats one message at most.

use std::collections::BTreeMap;

use super::kit::{Desk, Receiver, ReceiverAnswer};

#[tokio::test(start_paused = true)]
async fn a_kill_while_a_message_is_delivered_loses_nothing_and_repeats_it_at_most() {
    const ENTRIES: u64 = 12;
    let (desk, receiver) = (Desk::new(), Receiver::start([]).await);
    drop(desk.begin(&["hook"]));
    desk.feed.add(ENTRIES);
    let mut kills = 0;
    for delivered in [0, 1, 2, 0, 3, 1] {
        let state = desk.state();
        let running = desk.run(&state, Desk::webhook("hook", receiver.port));
        // The receiver has the last message, and this program dies before it hears so.
        (0..delivered).for_each(|_| receiver.answer_next(ReceiverAnswer::Status(204)));
        receiver.answer_next(ReceiverAnswer::Kill(running.abort_handle()));
        assert!(running.await.unwrap_err().is_cancelled());
        kills += 1;
        // The attempt goes on by itself, as the bytes of a killed process do, and holds no lock.
        drop(state);
    }
    let state = desk.state();
    let _running = desk.run(&state, Desk::webhook("hook", receiver.port));
    let keys = receiver.key(&ENTRIES.to_string()).await;
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    keys.iter().for_each(|key| *counts.entry(key.parse().unwrap()).or_default() += 1);
    assert_eq!(
        counts.keys().copied().collect::<Vec<_>>(),
        (1..=ENTRIES).collect::<Vec<_>>(),
        "nothing is lost"
    );
    let repeated: usize = counts.values().map(|count| count - 1).sum();
    assert!(repeated <= kills, "{repeated} repeated by {kills} kills: {keys:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kill_between_messages_repeats_none() {
    let (desk, receiver) = (Desk::new(), Receiver::start([]).await);
    drop(desk.begin(&["hook"]));
    for number in 1..=5_u64 {
        desk.feed.add(1);
        let state = desk.state();
        let running = desk.run(&state, Desk::webhook("hook", receiver.port));
        receiver.requests(number as usize).await;
        while state.channel("hook").unwrap().cursor().number < number {
            tokio::task::yield_now().await;
        }
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
    }
    assert_eq!(receiver.keys(), ["1", "2", "3", "4", "5"]);
}

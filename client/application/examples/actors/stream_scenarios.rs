//! What `main` does for each test of streams. Wrong results are panics, which end the application with code
//! 101.

use std::path::Path;
use std::time::Duration;

use cohabit::{Error, Result};
use futures::{StreamExt, TryStreamExt};

use crate::actors::Counter;
use crate::streams;
use crate::task_scenarios::until;
use crate::tasks::{echo, lines};

fn texts(numbers: impl Iterator<Item = u64>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

pub(crate) async fn items_come_in_order(folder: &Path) -> Result<()> {
    let log = |name: &str| folder.join(name);
    let items: Vec<u64> = streams::numbers::remote(1_000, log("main")).try_collect().await?;
    assert_eq!(items, (1..=1_000).collect::<Vec<u64>>());
    assert_eq!(lines(&log("main")), texts(1..=1_000));
    // The maker and the reader share one process.
    assert_eq!(streams::sum_of_numbers::remote(1_000, log("task")).await?, 500_500);
    let none: Vec<u64> = streams::numbers::remote(0, log("none")).try_collect().await?;
    assert!(none.is_empty());
    Ok(())
}

pub(crate) async fn a_maker_pauses_at_8_unread_items(folder: &Path) -> Result<()> {
    let log = folder.join("log");
    let mut stream = streams::numbers::remote(20, log.clone()).start().await?;
    until(|| async { Ok(lines(&log).len() == 8) }).await?;
    // The one process runs it, because the maker waits and gave its core back.
    assert_eq!(echo::remote("beside").await?, "beside");
    assert_eq!(lines(&log), texts(1..=8));
    assert_eq!(stream.next().await, Some(Ok(1)));
    until(|| async { Ok(lines(&log).len() == 9) }).await?;
    assert_eq!(echo::remote("beside").await?, "beside");
    assert_eq!(lines(&log), texts(1..=9));
    let rest: Vec<u64> = stream.try_collect().await?;
    assert_eq!(rest, (2..=20).collect::<Vec<u64>>());
    assert_eq!(lines(&log), texts(1..=20));
    Ok(())
}

pub(crate) async fn a_stream_goes_on_after_the_end_of_its_process(folder: &Path) -> Result<()> {
    let (log, mark) = (folder.join("log"), folder.join("mark"));
    let stream = streams::numbers_of_two_processes::remote(30, log.clone(), mark.clone());
    let items: Vec<u64> = stream.try_collect().await?;
    assert_eq!(items, (1..=30).collect::<Vec<u64>>());
    assert_eq!(lines(&log), texts((1..=5).chain(1..=30)));

    let (log, mark) = (folder.join("once"), folder.join("mark of once"));
    let stream = streams::numbers_of_two_processes::remote(30, log.clone(), mark).retries(0);
    let mut items: Vec<Result<u64>> = stream.collect().await;
    let lost = items.pop();
    assert!(matches!(&lost, Some(Err(Error::Lost(text))) if text.contains("ended 1 times")), "{lost:?}");
    let arrived = items.len() as u64;
    assert_eq!((items, arrived < 5), ((1..=arrived).map(Ok).collect(), true));
    assert_eq!(lines(&log), texts(1..=5));
    Ok(())
}

pub(crate) async fn dropping_a_stream_cancels_its_task() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let total = async |expected| until(|| async { Ok(counter.total().await? == expected) }).await;
    // One that is paused.
    let stream = streams::for_ever::remote(counter.clone()).start().await?;
    total(1).await?;
    drop(stream);
    total(101).await?;
    // One that makes items.
    let items: Vec<u64> = streams::for_ever::remote(counter.clone()).take(1_000).try_collect().await?;
    assert_eq!(items, [7; 1_000]);
    total(202).await?;
    let limit = Duration::from_millis(200);
    let mut late = streams::for_ever::remote(counter.clone()).within(limit);
    let ended = loop {
        match late.next().await {
            Some(Ok(item)) => assert_eq!(item, 7),
            ended => break ended,
        }
    };
    assert_eq!((ended, late.next().await), (Some(Err(Error::TimedOut(limit))), None));
    total(303).await
}

pub(crate) async fn errors_of_streams_come_after_their_items() -> Result<()> {
    let failed: Vec<Result<String>> = streams::fail_after::remote(2).collect().await;
    let error = Err(Error::Failed("no more: no disk".into()));
    assert_eq!(failed, [Ok("0".into()), Ok("1".into()), error]);
    let panicked: Vec<Result<String>> = streams::panic_after::remote("ouch").collect().await;
    assert_eq!(panicked, [Ok("ouch".into()), Err(Error::Panicked("ouch".into()))]);

    // 5 bytes are the length of the text.
    let most = (16 << 20) - 5;
    let items: Vec<usize> = streams::large::remote(most).map_ok(|text| text.len()).try_collect().await?;
    assert_eq!(items, [most]);
    let larger: Vec<Result<String>> = streams::large::remote(most + 1).collect().await;
    let Some(Err(Error::Refused(text))) = larger.last() else { panic!("{} items", larger.len()) };
    assert!(text.starts_with("an item of the stream: larger than 16 MiB"), "{text}");
    let mut refused = streams::large::remote(1).gpus(1.5);
    assert!(matches!(refused.next().await, Some(Err(Error::Refused(_)))));
    assert_eq!(refused.next().await, None);
    // The function is as it was.
    assert_eq!(streams::large(3).try_collect::<Vec<String>>().await?, ["aaa"]);
    Ok(())
}

pub(crate) async fn items_have_handles() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let mut stream = streams::totals::remote(counter);
    for total in 1..=10 {
        let (counter, made, attempt) = stream.next().await.ok_or("too few items")??;
        assert_eq!((made.total().await?, attempt), (total, 1));
        assert!(counter.total().await? >= total);
    }
    // With the handles of items that nobody reads.
    drop(stream);
    assert_eq!(echo::remote("still here").await?, "still here");
    Ok(())
}

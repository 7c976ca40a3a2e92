//! `#[cohabit::test]`: applications in the process of their tests.

use std::time::Duration;

use cohabit::{Buffer, Context, Error, Gang, GangMember, Ref, Result};
use futures::future::{try_join, try_join_all};
use futures::{Stream, StreamExt, TryStreamExt, stream};

const MIB: usize = 1 << 20;

struct Counter {
    total: i64,
    incarnation: u32,
}

#[cohabit::actor(restarts = 1)]
impl Counter {
    fn new(start: i64, context: &Context) -> Self {
        Counter { total: start, incarnation: context.incarnation() }
    }

    fn add(&mut self, by: i64) -> Result<i64> {
        self.total = self.total.checked_add(by).ok_or("the total is too large")?;
        Ok(self.total)
    }

    fn thread(&self) -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    fn incarnation(&self) -> u32 {
        self.incarnation
    }

    fn panic(&mut self) {
        panic!("on purpose")
    }

    /// Saves a number for the next incarnation, or gives what was saved.
    fn saved(&mut self, context: &Context) -> Result<String> {
        let file = context.checkpoint_folder().join("saved");
        std::fs::write(&file, self.total.to_string())?;
        Ok(std::fs::read_to_string(&file)?)
    }
}

struct Device;

#[cohabit::actor(gpus = 1)]
impl Device {
    fn new() -> Self {
        Device
    }

    fn works(&self) -> bool {
        true
    }
}

#[cohabit::task]
fn square(number: u64) -> u64 {
    number * number
}

#[cohabit::task]
async fn fib(n: u64) -> Result<u64> {
    if n < 2 {
        return Ok(n);
    }
    let (first, second) = try_join(fib::remote(n - 1), fib::remote(n - 2)).await?;
    Ok(first + second)
}

#[cohabit::task]
fn bytes(length: usize) -> Buffer<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

#[cohabit::task]
fn sum(bytes: Buffer<u8>) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte)).sum()
}

#[cohabit::task]
fn squares(to: u64) -> impl Stream<Item = Result<u64>> {
    stream::iter(1..=to).map(|number| Ok(number * number))
}

#[cohabit::task(gpus = 1)]
async fn waits_for_another() -> Result<()> {
    waits_for_another::remote().await
}

#[cohabit::task]
async fn sleeps(counter: CounterHandle) -> Result<()> {
    let _adds = AddsWhenDropped(counter.clone());
    counter.add(1).await?;
    std::future::pending().await
}

struct AddsWhenDropped(CounterHandle);

impl Drop for AddsWhenDropped {
    fn drop(&mut self) {
        let _added = self.0.add(100).detach();
    }
}

#[cohabit::test]
async fn actors_count_on_threads_of_their_own() -> Result<()> {
    let counters = try_join_all((0..3).map(|start| Counter::remote(start).start())).await?;
    for (start, counter) in (0..).zip(&counters) {
        assert_eq!(counter.add(10).await?, start + 10);
        assert_eq!(counter.saved().await?, (start + 10).to_string());
    }
    let threads = try_join_all(counters.iter().map(|counter| counter.thread())).await?;
    assert_eq!(threads, ["actor 3", "actor 4", "actor 5"]);
    assert_eq!(counters[0].add(i64::MAX).await, Err(Error::Failed("the total is too large".into())));
    Ok(())
}

#[cohabit::test]
async fn a_panic_constructs_an_actor_anew() -> Result<()> {
    let counter = Counter::remote(5).start().await?;
    assert_eq!(counter.add(1).await?, 6);
    assert_eq!(counter.panic().await, Err(Error::Panicked("on purpose".into())));
    assert_eq!((counter.add(1).await?, counter.incarnation().await?), (6, 2));
    Ok(())
}

#[cohabit::test]
async fn tasks_call_tasks_to_any_depth() -> Result<()> {
    let squares = try_join_all((0..1_000).map(square::remote)).await?;
    assert!(squares.into_iter().eq((0..1_000).map(|number| number * number)));
    assert_eq!(fib::remote(10).await?, 55);
    Ok(())
}

#[cohabit::test(object_memory = "8M")]
async fn objects_are_passed_by_reference_and_spill() -> Result<()> {
    let made = try_join_all((1..=4).map(|number| bytes::remote(number * MIB).start())).await?;
    for (number, object) in (1..).zip(&made) {
        let expected: u64 = (0..number * MIB).map(|place| (place % 251) as u64).sum();
        assert_eq!(sum::remote(object).await?, expected);
    }
    let put: Ref<Buffer<u8>> = cohabit::put(&Buffer::from(vec![7; MIB])).await?;
    assert_eq!(sum::remote(&put).await?, 7 * MIB as u64);
    Ok(())
}

#[cohabit::test]
async fn items_come_as_they_are_made() -> Result<()> {
    let squares: Vec<u64> = squares::remote(100).try_collect().await?;
    assert!(squares.into_iter().eq((1..=100).map(|number| number * number)));
    Ok(())
}

#[cohabit::test(max_gpus = 1)]
async fn claims_of_gpus_count_and_a_deadlock_is_told() -> Result<()> {
    let first = Device::remote().start().await?;
    assert!(first.works().await?);
    let second = Device::remote().start().await?;
    let late = second.works().within(Duration::from_millis(50)).await;
    assert_eq!(late, Err(Error::TimedOut(Duration::from_millis(50))));
    drop(first);
    assert!(second.works().await?, "the GPU is free");
    drop(second);
    // The error of the inner one, in words.
    let Err(Error::Failed(told)) = waits_for_another::remote().await else { panic!("it waits") };
    assert!(told.contains("would wait for ever"), "{told}");
    Ok(())
}

#[cohabit::test]
async fn dropping_a_call_cancels_its_task() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let sleeping = sleeps::remote(counter.clone()).start().await?;
    while counter.add(0).await? != 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(sleeping);
    while counter.add(0).await? != 101 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

#[cohabit::test]
async fn a_detached_actor_goes_with_its_test() -> Result<()> {
    let counter = Counter::remote(1).name("left").detached().start().await?;
    assert_eq!(counter.add(1).await?, 2);
    Ok(())
}

#[cohabit::test]
fn a_test_need_not_be_async() {
    assert_eq!(square(3), 9);
}

#[cohabit::test]
#[should_panic(expected = "there is no such model")]
async fn an_error_fails_the_test() -> Result<()> {
    Err("there is no such model")?
}

#[cohabit::test]
#[should_panic(expected = "assertion `left == right` failed")]
async fn a_panic_fails_the_test() {
    assert_eq!(square::remote(2).await.unwrap(), 5);
}

#[test]
fn outside_of_a_test_there_is_no_application() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(async { square::remote(2).await });
    let Err(Error::Refused(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("#[cohabit::test]"), "{text}");
}

#[cohabit::test]
async fn a_task_squares() -> Result<()> {
    assert_eq!(square::remote(3).await?, 9);
    Ok(())
}

#[test]
fn many_run_beside_each_other() {
    // A scope panics if one of its threads did.
    std::thread::scope(|scope| (0..8).for_each(|_| _ = scope.spawn(a_task_squares)));
}

/// A member of a gang.
struct Shard {
    member: GangMember,
    incarnation: u32,
    calls: u32,
}

#[cohabit::actor(gpus = 1, restarts = 1)]
impl Shard {
    fn new(scale: u32, member: GangMember, context: &Context) -> Result<Self> {
        if scale == 0 && member.rank == 1 {
            Err("its scale is 0")?;
        }
        Ok(Shard { member, incarnation: context.incarnation(), calls: 0 })
    }

    fn rank(&self) -> (usize, usize) {
        (self.member.rank, self.member.size)
    }

    #[retry]
    fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// How often it was called before.
    #[retry]
    fn count(&mut self) -> u32 {
        self.calls += 1;
        self.calls - 1
    }

    fn panic(&mut self) {
        panic!("on purpose")
    }

    /// The sum of the ranks of others.
    async fn add(&self, others: Vec<ShardHandle>) -> Result<usize> {
        let ranks = try_join_all(others.iter().map(ShardHandle::rank)).await?;
        Ok(ranks.iter().map(|(rank, _)| rank).sum())
    }
}

#[cohabit::test(max_gpus = 4)]
async fn the_members_of_a_gang_know_their_ranks_and_call_each_other() -> Result<()> {
    let gang = Gang::of(4).gpus(1).start().await?;
    let scale: Ref<u32> = cohabit::put(&7).await?;
    let shards = gang.spawn(|member| Shard::remote(&scale, member)).await?;
    let ranks = try_join_all(shards.iter().map(ShardHandle::rank)).await?;
    assert_eq!(ranks, [(0, 4), (1, 4), (2, 4), (3, 4)]);
    assert_eq!(shards[0].add(shards[1..].to_vec()).await?, 6);
    // One of them is as good as all: their GPUs are free when none is left.
    let third = shards[2].clone();
    drop(shards);
    assert_eq!(third.rank().await?, (2, 4));
    let next = Gang::of(3).spawn(|member| Shard::remote(1, member)).await?;
    let waiting = next[0].rank().within(Duration::from_millis(200)).await;
    assert!(matches!(waiting, Err(Error::TimedOut(_))), "{waiting:?}");
    drop(third);
    assert_eq!(next[2].rank().await?, (2, 3));
    Ok(())
}

#[cohabit::test]
async fn a_gang_begins_anew_as_a_whole_when_a_method_panics() -> Result<()> {
    let shards = Gang::of(3).spawn(|member| Shard::remote(1, member)).await?;
    for _ in 0..2 {
        try_join_all(shards.iter().map(ShardHandle::count)).await?;
    }
    let panicked = shards[1].panic().await;
    assert!(matches!(&panicked, Err(Error::Panicked(text)) if text == "on purpose"), "{panicked:?}");
    // What the first incarnations knew is lost in all of them. Those that still end may answer first.
    while try_join_all(shards.iter().map(ShardHandle::incarnation)).await? != [2, 2, 2] {}
    assert_eq!(try_join_all(shards.iter().map(ShardHandle::count)).await?, [0, 0, 0]);
    shards[0].panic().await.unwrap_err();
    while shards[2].incarnation().await.is_ok() {}
    let over = shards[2].incarnation().await;
    assert!(matches!(over, Err(Error::GivenUp(_))), "{over:?}");
    Ok(())
}

#[cohabit::test]
async fn a_gang_ends_as_a_whole() -> Result<()> {
    let failing = Gang::of(3).spawn(|member| Shard::remote(0, member)).await?;
    // It may be ready and answer before the other one fails.
    let failed = loop {
        if let Err(failed) = failing[2].rank().await {
            break failed.to_string();
        }
    };
    assert!(failed.contains("that of rank 1: its scale is 0"), "{failed}");
    let named = Gang::of(2)
        .restarts(5)
        .spawn(|member| Shard::remote(1, member).name(format!("shard {}", member.rank)))
        .await?;
    let second = Shard::named("shard 1").await?;
    assert_eq!(second.rank().await?, (1, 2));
    named[0].stop().await?;
    let stopped = second.rank().await;
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    Ok(())
}

#[cohabit::test(max_gpus = 3)]
async fn what_no_gang_can_be_is_refused() {
    let refused = |result: Result<Vec<ShardHandle>>| match result {
        Err(Error::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    let none = Gang::of(0).start().await.map(drop).unwrap_err().to_string();
    assert!(none.contains("1 to 1000 members, not 0"), "{none}");
    let many = refused(Gang::of(4).spawn(|member| Shard::remote(1, member)).await);
    assert!(many.contains("needs 4 GPUs") && many.contains("raise max_gpus"), "{many}");
    let different = |member: GangMember| Shard::remote(1, member).restarts(member.rank as u32);
    let different = refused(Gang::of(2).spawn(different).await);
    assert!(different.contains("rank 1") && different.contains("methods of Gang"), "{different}");
    let twice = refused(Gang::of(2).spawn(|member| Shard::remote(1, member).name("one")).await);
    assert!(twice.contains("'one'"), "{twice}");
}

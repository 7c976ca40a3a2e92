//! Lines of several outputs in the order of their times.
//!
//! Each output is in order by itself, so the next line is the earliest among the first ones of all. An output
//! is opened when the lines come to the time at which it begins: few are open at once, however many there
//! are. Where outputs are followed, the next line of one that is quiet may never come: it is waited for a
//! moment only.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use cohabit_client::types::Time;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered, StreamExt};
use tokio::time::{Instant, timeout};

use super::log_lines::OutputLine;

/// An output that has had nothing for so long is not waited for.
const QUIET: Duration = Duration::from_millis(200);

/// The lines of an output.
pub(super) type OutputLines<E> = BoxStream<'static, Result<OutputLine, E>>;

/// Whether the ends of all outputs are near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MergePace {
    /// All lines are there.
    Finished,
    /// More lines may come at any time.
    Followed,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Merged<E> {
    /// A line of the output with this number.
    Line(usize, OutputLine),
    /// The output with this number cannot be read on.
    Failed(usize, E),
}

/// Outputs that are read.
pub(super) struct LineMerge<E> {
    pace: MergePace,
    /// Those that were not opened, by the time at which they begin.
    unopened: VecDeque<Unopened<E>>,
    /// The first lines of those that have one.
    heads: BinaryHeap<Reverse<Head>>,
    open: BTreeMap<usize, OutputLines<E>>,
    /// Those whose next line is waited for, with the time since when.
    pulled: FuturesUnordered<BoxFuture<'static, Pulled<E>>>,
    since: BTreeMap<usize, Instant>,
}

struct Unopened<E> {
    number: usize,
    begins_at: Time,
    open: Box<dyn FnOnce() -> OutputLines<E> + Send>,
}

struct Pulled<E> {
    number: usize,
    next: Option<Result<OutputLine, E>>,
    rest: OutputLines<E>,
}

/// A line; the earliest comes first, then that of the output with the lowest number.
#[derive(PartialEq, Eq)]
struct Head {
    number: usize,
    line: OutputLine,
}

impl Head {
    const fn key(&self) -> (Time, usize) {
        (self.line.at, self.number)
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E: Send + 'static> LineMerge<E> {
    pub(super) fn new(pace: MergePace) -> LineMerge<E> {
        LineMerge {
            pace,
            unopened: VecDeque::new(),
            heads: BinaryHeap::new(),
            open: BTreeMap::new(),
            pulled: FuturesUnordered::new(),
            since: BTreeMap::new(),
        }
    }

    /// One more output, which begins at this time.
    pub(super) fn add(
        &mut self,
        number: usize,
        begins_at: Time,
        open: impl FnOnce() -> OutputLines<E> + Send + 'static,
    ) {
        let position = self.unopened.partition_point(|other| other.begins_at <= begins_at);
        self.unopened.insert(position, Unopened { number, begins_at, open: Box::new(open) });
    }

    /// How many outputs have not ended.
    pub(super) fn unfinished(&self) -> usize {
        self.unopened.len() + self.open.len() + self.pulled.len()
    }

    /// The next line; none if all outputs have ended. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Merged<E>> {
        loop {
            self.open_due();
            if self.is_settled()
                && let Some(Reverse(Head { number, line })) = self.heads.pop()
            {
                self.pull(number);
                return Some(Merged::Line(number, line));
            }
            if self.pulled.is_empty() && self.unopened.is_empty() {
                return None;
            }
            let pulled = match self.patience() {
                Some(patience) => timeout(patience, self.pulled.next()).await.ok().flatten(),
                None => self.pulled.next().await,
            };
            if let Some(failed) = pulled.and_then(|pulled| self.take(pulled)) {
                return Some(failed);
            }
        }
    }

    /// Opens outputs that begin before the first line, and some where there is no line at all.
    fn open_due(&mut self) {
        while let Some(first) = self.unopened.front() {
            let is_due = match self.heads.peek() {
                Some(Reverse(head)) => first.begins_at <= head.line.at,
                None => self.is_settled(),
            };
            let Some(due) = self.unopened.pop_front_if(|_| is_due) else { return };
            self.open.insert(due.number, (due.open)());
            self.pull(due.number);
        }
    }

    fn pull(&mut self, number: usize) {
        let Some(mut rest) = self.open.remove(&number) else { return };
        self.since.insert(number, Instant::now());
        self.pulled.push(Box::pin(async move {
            let next = rest.next().await;
            Pulled { number, next, rest }
        }));
    }

    fn take(&mut self, Pulled { number, next, rest }: Pulled<E>) -> Option<Merged<E>> {
        self.since.remove(&number);
        match next? {
            Ok(line) => {
                self.heads.push(Reverse(Head { number, line }));
                self.open.insert(number, rest);
                None
            }
            Err(error) => Some(Merged::Failed(number, error)),
        }
    }

    /// Whether no line is expected now that may be earlier than those that are there.
    fn is_settled(&self) -> bool {
        match self.pace {
            MergePace::Finished => self.pulled.is_empty(),
            MergePace::Followed => self.since.values().all(|since| since.elapsed() >= QUIET),
        }
    }

    /// How long to wait for a line before those that are there count.
    fn patience(&self) -> Option<Duration> {
        let waits = self.pace == MergePace::Followed && !(self.heads.is_empty() && self.unopened.is_empty());
        let youngest = self.since.values().max().filter(|_| waits)?;
        Some(QUIET.saturating_sub(youngest.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use cohabit_client::types::LogStream;
    use futures::stream;

    use super::*;
    use crate::process::block_on;
    use crate::render::samples::at;

    fn line(seconds: u64) -> OutputLine {
        OutputLine { stream: LogStream::Stdout, at: at(seconds), text: Vec::new() }
    }

    fn output(times: &'static [u64]) -> OutputLines<&'static str> {
        stream::iter(times.iter().map(|seconds| Ok(line(*seconds)))).boxed()
    }

    /// All lines, as the seconds and the numbers of their outputs.
    fn merged(mut merge: LineMerge<&'static str>) -> Vec<(u64, usize)> {
        block_on(async move {
            let mut all = Vec::new();
            while let Some(next) = merge.next().await {
                let Merged::Line(number, line) = next else { panic!("{next:?}") };
                all.push((line.at.since(at(0)).as_micros() / 1_000_000, number));
            }
            Ok(all)
        })
        .unwrap()
    }

    #[test]
    fn lines_come_in_the_order_of_their_times() {
        for pace in [MergePace::Finished, MergePace::Followed] {
            let mut merge = LineMerge::new(pace);
            merge.add(2, at(2), || output(&[3, 3, 7]));
            merge.add(1, at(0), || output(&[1, 3, 6]));
            merge.add(3, at(5), || output(&[]));
            merge.add(4, at(6), || output(&[9]));
            let expected = [(1, 1), (3, 1), (3, 2), (3, 2), (6, 1), (7, 2), (9, 4)];
            assert_eq!(merged(merge), expected);
        }
    }

    #[test]
    fn outputs_are_opened_when_it_is_their_time() {
        static OPEN: AtomicUsize = AtomicUsize::new(0);
        struct Counted;
        impl Drop for Counted {
            fn drop(&mut self) {
                OPEN.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let most = Arc::new(AtomicUsize::new(0));
        let mut merge = LineMerge::new(MergePace::Finished);
        for number in 0..100_usize {
            let most = Arc::clone(&most);
            merge.add(number, at(number as u64), move || {
                let open = OPEN.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(open, Ordering::SeqCst);
                let counted = Counted;
                let only = move |_| {
                    let _counted = &counted;
                    Ok(line(number as u64))
                };
                stream::iter(0..1).map(only).boxed()
            });
        }
        let lines = merged(merge);
        assert!(lines.is_sorted() && lines.len() == 100);
        assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
    }

    /// One that never ends and has nothing holds nobody up.
    #[test]
    fn a_quiet_output_is_not_waited_for() {
        let mut merge = LineMerge::new(MergePace::Followed);
        merge.add(1, at(0), || stream::pending().boxed());
        merge.add(2, at(50), || output(&[51, 52]));
        let found = block_on(async move {
            let mut all = Vec::new();
            while all.len() < 2 {
                let Some(Merged::Line(number, line)) = merge.next().await else { panic!() };
                all.push((number, line.at));
            }
            Ok(all)
        })
        .unwrap();
        assert_eq!(found, [(2, at(51)), (2, at(52))]);
    }

    #[test]
    fn an_output_that_cannot_be_read_ends_alone() {
        let mut merge = LineMerge::new(MergePace::Finished);
        merge.add(1, at(0), || stream::iter([Ok(line(1)), Err("its node is away")]).boxed());
        merge.add(2, at(0), || output(&[2, 3]));
        assert_eq!(merge.unfinished(), 2);
        let found = block_on(async move {
            let mut all = Vec::new();
            while let Some(next) = merge.next().await {
                all.push(next);
            }
            assert_eq!(merge.unfinished(), 0);
            Ok(all)
        })
        .unwrap();
        let expected = [
            Merged::Line(1, line(1)),
            Merged::Failed(1, "its node is away"),
            Merged::Line(2, line(2)),
            Merged::Line(2, line(3)),
        ];
        assert_eq!(found, expected);
    }
}

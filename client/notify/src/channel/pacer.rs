//! How many messages a recipient gets: beyond a number a minute, they come as one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use cohabit_client::types::FeedEntry;
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);
/// So many entries are told together before the minute is over.
const MOST_HELD: usize = 200;

/// The messages of the last minute, and what is held back, for each recipient of a channel.
#[derive(Debug)]
pub(super) struct Pacer {
    most: usize,
    recipients: BTreeMap<String, Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    /// When messages were delivered within the last minute.
    sent: VecDeque<Instant>,
    held: Vec<FeedEntry>,
}

impl Recent {
    fn forget(&mut self, now: Instant) {
        while self.sent.front().is_some_and(|sent| now.duration_since(*sent) >= WINDOW) {
            self.sent.pop_front();
        }
    }

    /// When what is held back is due; none if nothing is.
    fn due(&self, most: usize) -> Option<Instant> {
        let first = self.sent.front()?;
        let is_full = self.sent.len() >= most && self.held.len() < MOST_HELD;
        (!self.held.is_empty()).then(|| if is_full { *first + WINDOW } else { *first })
    }
}

impl Pacer {
    pub(super) fn new(most: usize) -> Pacer {
        Pacer { most, recipients: BTreeMap::new() }
    }

    /// Whether a message may go to this recipient now; otherwise its entry is held back.
    pub(super) fn admit(&mut self, recipient: &str, entry: &FeedEntry, now: Instant) -> bool {
        let most = self.most;
        self.recipients.retain(|_, recent| {
            recent.forget(now);
            !recent.sent.is_empty() || !recent.held.is_empty()
        });
        let Some(recent) = self.recipients.get_mut(recipient) else { return true };
        let may_go = recent.sent.len() < most && recent.held.is_empty();
        if !may_go {
            recent.held.push(entry.clone());
        }
        may_go
    }

    /// A message went to this recipient.
    pub(super) fn sent(&mut self, recipient: &str, now: Instant) {
        self.recipients.entry(recipient.to_owned()).or_default().sent.push_back(now);
    }

    /// What is due to be told together, and to whom.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(String, Vec<FeedEntry>)> {
        let most = self.most;
        let due = |recent: &Recent| match recent.due(most) {
            Some(due) => due <= now,
            None => !recent.held.is_empty(),
        };
        let (recipient, recent) = self.recipients.iter_mut().find(|(_, recent)| due(recent))?;
        Some((recipient.clone(), std::mem::take(&mut recent.held)))
    }

    /// When something is due next.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.recipients.values().filter_map(|recent| recent.due(self.most)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::samples::{ended, entry};

    fn numbered(number: u64) -> FeedEntry {
        entry(number, ended(number))
    }

    fn numbers(due: Option<(String, Vec<FeedEntry>)>) -> Option<(String, Vec<u64>)> {
        due.map(|(recipient, entries)| (recipient, entries.iter().map(|entry| entry.number).collect()))
    }

    /// Offers an entry, and notes the message if it may go.
    fn offer(pacer: &mut Pacer, recipient: &str, number: u64, now: Instant) -> bool {
        let may_go = pacer.admit(recipient, &numbered(number), now);
        if may_go {
            pacer.sent(recipient, now);
        }
        may_go
    }

    #[test]
    fn beyond_so_many_a_minute_entries_are_told_together_when_the_minute_is_over() {
        let (mut pacer, start) = (Pacer::new(2), Instant::now());
        let after = |secs| start + Duration::from_secs(secs);
        let went: Vec<bool> = (1..=5).map(|number| offer(&mut pacer, "ada", number, after(number))).collect();
        assert_eq!(went, [true, true, false, false, false]);
        assert_eq!((pacer.next_due(), pacer.take_due(after(60))), (Some(after(61)), None));
        assert_eq!(numbers(pacer.take_due(after(61))), Some(("ada".to_owned(), vec![3, 4, 5])));
        pacer.sent("ada", after(61));
        assert_eq!((pacer.take_due(after(61)), pacer.next_due()), (None, None));
        assert!(!offer(&mut pacer, "ada", 6, after(61)), "the digest counts");
        assert!(offer(&mut pacer, "eve", 7, after(61)), "each has an own minute");
    }

    #[test]
    fn what_is_held_back_goes_before_what_comes_later() {
        let (mut pacer, start) = (Pacer::new(1), Instant::now());
        let after = |secs| start + Duration::from_secs(secs);
        assert!(offer(&mut pacer, "ada", 1, start) && !offer(&mut pacer, "ada", 2, after(1)));
        assert!(!offer(&mut pacer, "ada", 3, after(61)), "the minute is over, but 2 waits");
        assert_eq!(numbers(pacer.take_due(after(61))), Some(("ada".to_owned(), vec![2, 3])));
        assert!(offer(&mut pacer, "ada", 4, after(130)));
    }

    #[test]
    fn no_more_is_held_back_than_one_message_can_say() {
        let (mut pacer, start) = (Pacer::new(1), Instant::now());
        assert!(offer(&mut pacer, "ada", 1, start));
        for number in 2..=MOST_HELD as u64 + 1 {
            assert_eq!(pacer.take_due(start), None, "{number}");
            assert!(!offer(&mut pacer, "ada", number, start));
        }
        assert_eq!(numbers(pacer.take_due(start)).unwrap().1.len(), MOST_HELD);
    }
}

//! The feed: rows of the table `feed`, in the order of the events that they follow from.
//!
//! Each row has the number of its event and its place among the rows of that event. After a crash the replay
//! repeats rows that are there already; those are passed over, so every row is written once. Rows are
//! numbered without a gap, so that a reader who comes too late learns how many it has missed. The latest row
//! is never removed: it says where the numbers go on. Where a backup was restored, they jump: rows that it
//! lacks may have been told under the numbers behind its last one. The table `meta` has a line for each jump.

use cohabit_journal::{decode_feed_event, encode_feed_event};
use cohabit_types::{Feed, FeedCursor, FeedEntry, FeedEvent, FeedGap, Time};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, named_params, params_from_iter};

use crate::sql::no_json;

/// An event of the feed, and the event of the journal that it follows from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FeedWrite {
    /// The number of that event.
    pub(crate) sequence: u64,
    /// Its place among the rows of that event.
    pub(crate) ordinal: u32,
    /// The event.
    pub(crate) event: Box<FeedEvent>,
}

/// How far the feed is written, and what it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeedPosition {
    /// The number of the latest row, or of the jump behind it; 0 before the first.
    number: u64,
    /// The event of that row, and its place.
    place: Option<(u64, u32)>,
    entries: u64,
    /// The length of their texts.
    bytes: u64,
    bounds: FeedBounds,
}

/// The most that the feed holds: when one is passed, a part of the oldest rows goes.
#[derive(Debug, Clone, Copy)]
struct FeedBounds {
    entries: u64,
    bytes: u64,
}

const BOUNDS: FeedBounds = FeedBounds { entries: 100_000, bytes: 64 << 20 };

/// The part of the feed that goes at once.
const PART_REMOVED: u64 = 16;

/// Entries in one answer.
const MOST_ENTRIES: u64 = 256;
/// An answer ends with the entry that reaches this many bytes.
const MOST_BYTES: usize = 1 << 20;

impl FeedPosition {
    /// How far the feed of this journal is written.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<FeedPosition> {
        let latest = "SELECT number, sequence, ordinal FROM feed ORDER BY number DESC LIMIT 1";
        let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let latest: Option<(u64, u64, u32)> = connection.query_row(latest, [], columns).optional()?;
        let size = "SELECT count(*), ifnull(sum(length(event)), 0) FROM feed";
        let (entries, bytes) = connection.query_row(size, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let jump = "SELECT ifnull(max(CAST(value AS INTEGER)), 0) FROM meta WHERE key GLOB 'feed_jump_*'";
        let jump: u64 = connection.query_row(jump, [], |row| row.get(0))?;
        let number = latest.map_or(0, |(number, ..)| number).max(jump);
        let place = latest.map(|(_, sequence, ordinal)| (sequence, ordinal));
        Ok(FeedPosition { number, place, entries, bytes, bounds: BOUNDS })
    }
}

/// Writes a row, unless it is there already.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    write: &FeedWrite,
    position: &mut FeedPosition,
) -> rusqlite::Result<()> {
    let FeedWrite { sequence, ordinal, event } = write;
    if position.place.is_some_and(|written| (*sequence, *ordinal) <= written) {
        return Ok(());
    }
    let text = encode_feed_event(event).map_err(no_json)?;
    let insert = "INSERT INTO feed VALUES (:number, :sequence, :ordinal, :at_us, :kind, :job, :user, :event)";
    transaction.prepare_cached(insert)?.execute(named_params! {
        ":number": position.number + 1,
        ":sequence": sequence,
        ":ordinal": ordinal,
        ":at_us": event.at.as_micros(),
        ":kind": event.kind.word(),
        ":job": event.job.as_ref().map(|job| job.id.to_string()),
        ":user": event.job.as_ref().map(|job| &job.user),
        ":event": text,
    })?;
    position.number += 1;
    position.place = Some((*sequence, *ordinal));
    position.entries += 1;
    position.bytes += text.len() as u64;
    if position.entries > position.bounds.entries || position.bytes > position.bounds.bytes {
        let kept = position.entries - position.entries.div_ceil(PART_REMOVED);
        let newest_removed =
            format!("SELECT number FROM feed ORDER BY number DESC LIMIT 1 OFFSET {}", kept.max(1));
        let condition = format!("number <= ({newest_removed})");
        remove(transaction, &condition, position)?;
    }
    Ok(())
}

/// Passes over so many numbers, for good.
pub(crate) fn skip_numbers(
    transaction: &Transaction<'_>,
    numbers: u64,
    position: &mut FeedPosition,
) -> rusqlite::Result<()> {
    let behind = position.number.saturating_add(numbers);
    let key = format!("feed_jump_{behind}");
    transaction.execute("INSERT OR IGNORE INTO meta VALUES (?1, ?2)", (key, behind.to_string()))?;
    position.number = behind;
    Ok(())
}

/// Removes rows of before this time, except the latest.
pub(crate) fn prune(
    transaction: &Transaction<'_>,
    before: Time,
    position: &mut FeedPosition,
) -> rusqlite::Result<()> {
    let latest = "SELECT max(number) FROM feed";
    let condition = format!("at_us < {} AND number < ({latest})", before.as_micros());
    remove(transaction, &condition, position)
}

fn remove(
    transaction: &Transaction<'_>,
    condition: &str,
    position: &mut FeedPosition,
) -> rusqlite::Result<()> {
    let size = format!("SELECT ifnull(sum(length(event)), 0) FROM feed WHERE {condition}");
    let bytes: u64 = transaction.query_row(&size, [], |row| row.get(0))?;
    let removed = transaction.execute(&format!("DELETE FROM feed WHERE {condition}"), [])?;
    position.entries = position.entries.saturating_sub(removed as u64);
    position.bytes = position.bytes.saturating_sub(bytes);
    Ok(())
}

/// The entries after this cursor, those of one user where one is given; without a cursor only where the feed
/// ends.
pub(super) fn read(
    connection: &Connection,
    after: Option<FeedCursor>,
    user: Option<&str>,
) -> rusqlite::Result<Feed> {
    // All of it as of one time.
    let transaction = connection.unchecked_transaction()?;
    let end = cursor(&transaction, "SELECT number, at_us FROM feed ORDER BY number DESC LIMIT 1")?;
    let end = end.unwrap_or(FeedCursor::START);
    let Some(after) = after else {
        return Ok(Feed { gap: FeedGap::None, entries: Vec::new(), next: end, more: false });
    };
    let (start, gap) = start_of(&transaction, after, end)?;
    let (mut page, skipped) = page(&transaction, start, end, user)?;
    page.gap = match gap {
        FeedGap::None if skipped == 0 => FeedGap::None,
        FeedGap::None | FeedGap::Entries(_) if user.is_some() => FeedGap::Unknown,
        FeedGap::None => FeedGap::Entries(skipped),
        FeedGap::Entries(count) => FeedGap::Entries(count + skipped),
        FeedGap::Unknown => FeedGap::Unknown,
    };
    Ok(page)
}

/// The number behind which the answer begins, and what is missing before it.
///
/// The cursor may be of another feed: of the cluster that ran here before, or of what a backup had not yet.
/// Then everything that happened later than its entry is new.
fn start_of(
    transaction: &Transaction<'_>,
    after: FeedCursor,
    end: FeedCursor,
) -> rusqlite::Result<(u64, FeedGap)> {
    let first = cursor(transaction, "SELECT number, at_us FROM feed ORDER BY number LIMIT 1")?;
    let first = first.map_or(1, |first| first.number);
    let known = format!("SELECT number, at_us FROM feed WHERE number = {}", number(after.number));
    let same = cursor(transaction, &known)?.is_none_or(|known| known == after);
    if after.number > end.number || !same {
        let earlier = "SELECT ifnull(max(number), ?2) FROM feed WHERE at_us <= ?1";
        let earlier =
            transaction
                .query_row(earlier, [number(after.at.as_micros()), number(first - 1)], |row| row.get(0))?;
        return Ok((earlier, FeedGap::Unknown));
    }
    Ok(match (first - 1).checked_sub(after.number) {
        None | Some(0) => (after.number, FeedGap::None),
        // What a predecessor told before a backup was restored cannot be counted.
        Some(_) if jumps_between(transaction, after.number, first)? => (first - 1, FeedGap::Unknown),
        Some(missing) => (first - 1, FeedGap::Entries(missing)),
    })
}

fn jumps_between(transaction: &Transaction<'_>, after: u64, first: u64) -> rusqlite::Result<bool> {
    let jumps = "SELECT count(*) FROM meta WHERE key GLOB 'feed_jump_*' AND CAST(value AS INTEGER) > ?1 \
                 AND CAST(value AS INTEGER) < ?2";
    let jumps: u64 = transaction.query_row(jumps, [number(after), number(first)], |row| row.get(0))?;
    Ok(jumps > 0)
}

/// The entries behind this number, and how many there are that this version cannot read.
fn page(
    transaction: &Transaction<'_>,
    start: u64,
    end: FeedCursor,
    user: Option<&str>,
) -> rusqlite::Result<(Feed, u64)> {
    let of_user = if user.is_some() { "AND user = ?2" } else { "" };
    let wanted = format!(
        "SELECT number, at_us, event FROM feed WHERE number > ?1 {of_user} ORDER BY number LIMIT {MOST_ENTRIES}"
    );
    let values: Vec<Value> =
        [number(start).into()].into_iter().chain(user.map(|it| it.to_owned().into())).collect();
    let mut query = transaction.prepare(&wanted)?;
    let mut rows = query.query(params_from_iter(values))?;
    let (mut entries, mut skipped, mut bytes, mut count, mut last) = (Vec::new(), 0, 0, 0, end);
    while let Some(row) = rows.next()? {
        (count, last) = (count + 1, FeedCursor { number: row.get(0)?, at: Time::from_micros(row.get(1)?) });
        let text: String = row.get(2)?;
        match decode_feed_event(&text) {
            Ok(event) => {
                bytes += event.weight();
                entries.push(FeedEntry { number: last.number, event });
            }
            Err(error) => {
                tracing::warn!(entry = last.number, %error, "an entry of the feed cannot be read");
                skipped += 1;
            }
        }
        if bytes >= MOST_BYTES {
            break;
        }
    }
    let is_full = count == MOST_ENTRIES || bytes >= MOST_BYTES;
    let next = if is_full { last } else { end };
    let feed = Feed { gap: FeedGap::None, entries, next, more: next.number < end.number };
    Ok((feed, skipped))
}

fn cursor(transaction: &Transaction<'_>, query: &str) -> rusqlite::Result<Option<FeedCursor>> {
    let columns = |row: &Row<'_>| Ok(FeedCursor { number: row.get(0)?, at: Time::from_micros(row.get(1)?) });
    transaction.query_row(query, [], columns).optional()
}

/// As SQLite counts.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Journal, JournalWrite, SqliteJournal};
    use crate::test_kit::{TestJournal, at, feed_event};

    fn write(sequence: u64, ordinal: u32, user: &str) -> FeedWrite {
        FeedWrite { sequence, ordinal, event: Box::new(feed_event(at(sequence), user)) }
    }

    fn commit(journal: &mut SqliteJournal, writes: impl IntoIterator<Item = FeedWrite>) {
        let writes: Vec<JournalWrite> = writes.into_iter().map(JournalWrite::Feed).collect();
        journal.commit(&writes).unwrap();
    }

    fn read_after(journal: &TestJournal, after: FeedCursor, user: Option<&str>) -> Feed {
        read(&Connection::open(&journal.path).unwrap(), Some(after), user).unwrap()
    }

    fn numbers(feed: &Feed) -> Vec<u64> {
        feed.entries.iter().map(|entry| entry.number).collect()
    }

    fn cursor_at(number: u64, secs: u64) -> FeedCursor {
        FeedCursor { number, at: at(secs) }
    }

    #[test]
    fn rows_that_a_replay_repeats_are_written_once_and_numbers_have_no_gap() {
        let journal = TestJournal::new();
        commit(&mut journal.open(), [write(3, 0, "ada"), write(3, 1, "ada")]);
        let mut reopened = journal.open();
        commit(&mut reopened, [write(3, 0, "ada"), write(3, 1, "ada"), write(5, 0, "ada")]);
        commit(&mut reopened, [write(5, 0, "ada"), write(6, 0, "eve")]);
        let feed = read_after(&journal, FeedCursor::START, None);
        assert_eq!((numbers(&feed), feed.gap, feed.more), (vec![1, 2, 3, 4], FeedGap::None, false));
        assert_eq!(feed.next, cursor_at(4, 6));
        assert_eq!(numbers(&read_after(&journal, cursor_at(2, 3), None)), [3, 4]);
        assert_eq!(numbers(&read_after(&journal, feed.next, None)), [0; 0]);
    }

    #[test]
    fn a_user_sees_the_own_entries_and_the_cursor_passes_those_of_others() {
        let journal = TestJournal::new();
        let users = ["ada", "eve", "eve", "ada", "eve"];
        commit(&mut journal.open(), (1..).zip(users).map(|(secs, user)| write(secs, 0, user)));
        let feed = read_after(&journal, FeedCursor::START, Some("ada"));
        assert_eq!((numbers(&feed), feed.next), (vec![1, 4], cursor_at(5, 5)));
        assert_eq!(numbers(&read_after(&journal, FeedCursor::START, Some("' OR 1=1 --"))), [0; 0]);
    }

    #[test]
    fn a_reader_who_comes_too_late_learns_how_many_entries_are_missing() {
        let journal = TestJournal::new();
        let mut open = journal.open();
        commit(&mut open, (1..=10).map(|secs| write(secs, 0, "ada")));
        let prune = |before| JournalWrite::Prune { history: at(0), archive: at(0), feed: before };
        open.commit(&[prune(at(6))]).unwrap();
        let feed = read_after(&journal, cursor_at(2, 2), None);
        assert_eq!((numbers(&feed), feed.gap), (vec![6, 7, 8, 9, 10], FeedGap::Entries(3)));
        assert_eq!(read_after(&journal, cursor_at(2, 2), Some("ada")).gap, FeedGap::Unknown);
        assert_eq!(read_after(&journal, cursor_at(5, 5), None).gap, FeedGap::None);
        open.commit(&[prune(at(99))]).unwrap();
        drop(open);
        commit(&mut journal.open(), [write(11, 0, "ada")]);
        let feed = read_after(&journal, cursor_at(5, 5), None);
        assert_eq!((numbers(&feed), feed.gap), (vec![10, 11], FeedGap::Entries(4)), "the numbers go on");
    }

    #[test]
    fn a_cursor_of_another_feed_is_noticed_and_what_is_later_is_told() {
        let journal = TestJournal::new();
        commit(&mut journal.open(), (1..=4).map(|secs| write(secs, 0, "ada")));
        for other in [cursor_at(9, 2), cursor_at(3, 2)] {
            let feed = read_after(&journal, other, None);
            assert_eq!((numbers(&feed), feed.gap), (vec![3, 4], FeedGap::Unknown), "{other:?}");
        }
        let feed = read_after(&journal, cursor_at(u64::MAX, u64::MAX / 2_000_000), None);
        assert_eq!((numbers(&feed), feed.gap), (vec![], FeedGap::Unknown));
    }

    #[test]
    fn numbers_that_were_skipped_are_never_used_and_not_counted_as_missing() {
        let journal = TestJournal::new();
        commit(&mut journal.open(), (1..=3).map(|secs| write(secs, 0, "ada")));
        journal.open().commit(&[JournalWrite::SkipFeedNumbers(1_000)]).unwrap();
        let prune = |before| JournalWrite::Prune { history: at(0), archive: at(0), feed: before };
        let mut reopened = journal.open();
        reopened.commit(&[prune(at(99))]).unwrap();
        commit(&mut reopened, [write(3, 0, "ada"), write(9, 0, "ada"), write(10, 0, "ada")]);
        let feed = read_after(&journal, cursor_at(3, 3), None);
        assert_eq!((numbers(&feed), feed.gap), (vec![1_004, 1_005], FeedGap::None));
        // The predecessor had told as much as this.
        let feed = read_after(&journal, cursor_at(7, 8), None);
        assert_eq!(numbers(&feed), [1_004, 1_005]);
        reopened.commit(&[prune(at(99))]).unwrap();
        let feed = read_after(&journal, cursor_at(2, 2), None);
        assert_eq!((numbers(&feed), feed.gap), (vec![1_005], FeedGap::Unknown));
        reopened.commit(&[JournalWrite::SkipFeedNumbers(1_000)]).unwrap();
        commit(&mut journal.open(), [write(11, 0, "ada")]);
        assert_eq!(numbers(&read_after(&journal, cursor_at(1_005, 10), None)), [2_006]);
    }

    #[test]
    fn answers_are_bounded_and_so_is_the_table() {
        let journal = TestJournal::new();
        commit(&mut journal.open(), (1..=600).map(|secs| write(secs, 0, "ada")));
        let (mut after, mut sizes) = (FeedCursor::START, Vec::new());
        loop {
            let feed = read_after(&journal, after, None);
            (after, sizes) = (feed.next, [sizes, vec![feed.entries.len()]].concat());
            if !feed.more {
                break;
            }
        }
        assert_eq!(sizes, [256, 256, 88]);
        let mut connection = Connection::open(&journal.path).unwrap();
        let transaction = connection.transaction().unwrap();
        let mut position = FeedPosition::read(&transaction).unwrap();
        position.bounds.entries = 600;
        insert(&transaction, &write(601, 0, "ada"), &mut position).unwrap();
        assert_eq!((position.entries, position.number), (601 - 38, 601));
        position.bounds.bytes = position.bytes;
        insert(&transaction, &write(602, 0, "ada"), &mut position).unwrap();
        assert!(position.bytes <= position.bounds.bytes && position.entries < 564, "{position:?}");
        let kept = FeedPosition::read(&transaction).unwrap();
        assert_eq!((kept.entries, kept.bytes, kept.number), (position.entries, position.bytes, 602));
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_passed_over_and_counted() {
        let journal = TestJournal::new();
        commit(&mut journal.open(), (1..=3).map(|secs| write(secs, 0, "ada")));
        journal.edit("UPDATE feed SET event = '{}' WHERE number = 2");
        let feed = read_after(&journal, FeedCursor::START, None);
        assert_eq!((numbers(&feed), feed.gap), (vec![1, 3], FeedGap::Entries(1)));
    }

    #[test]
    fn without_a_cursor_the_answer_says_where_the_feed_ends() {
        let journal = TestJournal::new();
        let end =
            |journal: &TestJournal| read(&Connection::open(&journal.path).unwrap(), None, None).unwrap();
        drop(journal.open());
        assert_eq!(end(&journal).next, FeedCursor::START);
        commit(&mut journal.open(), [write(3, 0, "ada")]);
        assert_eq!((end(&journal).next, end(&journal).entries), (cursor_at(1, 3), vec![]));
    }
}

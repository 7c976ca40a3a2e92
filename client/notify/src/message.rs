//! A message: an entry of the feed, or several, in words. Texts of users are made printable here.

#[cfg(test)]
pub(crate) mod samples;

use std::collections::BTreeMap;

use cohabit_client::types::{FeedEntry, FeedEvent, FeedJob, FeedKind, JobState, Time, shortened};
use cohabit_console::printable_line;

use crate::clock::rfc3339;

/// The longest title, in bytes.
const LONGEST_TITLE: usize = 200;
/// The longest line, in bytes.
const LONGEST_LINE: usize = 600;
/// How many entries a digest names.
const MOST_NAMED: usize = 40;

/// What is told to one recipient at once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    /// The same for every attempt to deliver it: a receiver that knows it already may drop it.
    pub(crate) key: String,
    /// What happened: `fail`; `digest` where several entries come as one.
    pub(crate) event: String,
    /// How urgent it is.
    pub(crate) urgency: MessageUrgency,
    /// When, by the head's clock.
    pub(crate) at: Time,
    /// One line, without control characters.
    pub(crate) title: String,
    /// More lines, each without control characters.
    pub(crate) lines: Vec<String>,
    /// What it is made of.
    pub(crate) entries: Vec<FeedEntry>,
}

/// How urgent a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MessageUrgency {
    /// For information.
    Low,
    /// Something may have to be done.
    Normal,
    /// Somebody has to look after it.
    High,
}

impl Message {
    /// A message about one entry.
    pub(crate) fn of(entry: FeedEntry) -> Message {
        let event = &entry.event;
        Message {
            key: entry.number.to_string(),
            event: event.kind.to_string(),
            urgency: urgency(event.kind),
            at: event.at,
            title: line(&title(event), LONGEST_TITLE),
            lines: lines(event).iter().map(|text| line(text, LONGEST_LINE)).collect(),
            entries: vec![entry],
        }
    }

    /// One message about several entries, the earliest first.
    pub(crate) fn digest(entries: Vec<FeedEntry>) -> Message {
        let (first, last) =
            (entries.first().map_or(0, |it| it.number), entries.last().map_or(0, |it| it.number));
        let mut kinds: BTreeMap<FeedKind, usize> = BTreeMap::new();
        entries.iter().for_each(|entry| *kinds.entry(entry.event.kind).or_default() += 1);
        let counts: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let mut lines: Vec<String> =
            entries.iter().take(MOST_NAMED).map(|entry| line(&title(&entry.event), LONGEST_TITLE)).collect();
        if let Some(more) = entries.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            lines.push(format!("and {more} more: see `cohabit list`"));
        }
        Message {
            key: format!("{first}-{last}"),
            event: "digest".to_owned(),
            urgency: entries
                .iter()
                .map(|entry| urgency(entry.event.kind))
                .max()
                .unwrap_or(MessageUrgency::Low),
            at: entries.last().map_or(Time::EPOCH, |entry| entry.event.at),
            title: format!("{} events: {}", entries.len(), counts.join(", ")),
            lines,
            entries,
        }
    }

    /// A message that is not about entries.
    pub(crate) fn plain(
        key: String,
        event: &str,
        urgency: MessageUrgency,
        at: Time,
        title: &str,
        text: &str,
    ) -> Message {
        Message {
            key,
            event: event.to_owned(),
            urgency,
            at,
            title: line(title, LONGEST_TITLE),
            lines: vec![line(text, LONGEST_LINE)],
            entries: Vec::new(),
        }
    }

    /// Title and lines, each on a line of its own.
    pub(crate) fn text(&self) -> String {
        let lines = std::iter::once(self.title.as_str()).chain(self.lines.iter().map(String::as_str));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn line(text: &str, most: usize) -> String {
    shortened(&printable_line(text), most)
}

const fn urgency(kind: FeedKind) -> MessageUrgency {
    match kind {
        FeedKind::Start | FeedKind::End | FeedKind::Reclaim | FeedKind::NodeBack | FeedKind::GpuBack => {
            MessageUrgency::Low
        }
        FeedKind::Fail
        | FeedKind::Timeout
        | FeedKind::OutOfMemory
        | FeedKind::Stall
        | FeedKind::Idle
        | FeedKind::Requeue => MessageUrgency::Normal,
        FeedKind::NodeLost | FeedKind::GpuFenced => MessageUrgency::High,
    }
}

/// `Job 12 train failed`.
fn title(event: &FeedEvent) -> String {
    match (&event.job, &event.device) {
        (Some(job), _) => {
            let what = if job.array.is_some() { "Array" } else { "Job" };
            format!("{what} {} {} {}", job.id, job.name, verb(event.kind, job.state))
        }
        (None, device) => {
            let node = event.node.as_deref().unwrap_or("?");
            let what =
                device.as_ref().map_or(format!("Node {node}"), |device| format!("GPU {device} of {node}"));
            format!("{what} {}", verb(event.kind, JobState::Running))
        }
    }
}

const fn verb(kind: FeedKind, state: JobState) -> &'static str {
    match kind {
        FeedKind::Start => "started",
        FeedKind::End if matches!(state, JobState::Cancelled) => "was cancelled",
        FeedKind::End => "completed",
        FeedKind::Fail => "failed",
        FeedKind::Timeout => "reached its time limit",
        FeedKind::OutOfMemory => "ran out of memory",
        FeedKind::Stall => "has stalled",
        FeedKind::Idle => "leaves its GPUs idle",
        FeedKind::Requeue => "is queued again",
        FeedKind::Reclaim => "made room for a more urgent job and is queued again",
        FeedKind::NodeLost => "is lost",
        FeedKind::NodeBack => "is back",
        FeedKind::GpuFenced => "is out of service",
        FeedKind::GpuBack => "is in service again",
    }
}

fn lines(event: &FeedEvent) -> Vec<String> {
    let mut lines = vec![event.text.clone()];
    if let Some(job) = &event.job {
        lines.extend(lines_of_job(job));
    }
    lines.push(format!("Time: {}", rfc3339(event.at)));
    lines
}

fn lines_of_job(job: &FeedJob) -> Vec<String> {
    let mut lines = vec![format!("State: {} ({})", job.state, job.reason_code)];
    lines.extend(job.exit_code.map(|code| format!("Exit code: {code}")));
    lines.extend(job.signal.map(|signal| format!("Signal: {signal}")));
    lines.push(format!("User: {}", job.user));
    if let Some(array) = &job.array {
        let counts: Vec<String> =
            array.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        lines.push(format!("Members: {} of {}", counts.join(", "), array.members));
    }
    if !job.nodes.is_empty() {
        lines.push(format!("Nodes: {}", job.nodes.join(", ")));
    }
    if let (Some(start), Some(end)) = (job.started_at, job.ended_at) {
        lines.push(format!("Run time: {}", end.since(start)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::samples::{ended, entry, node_lost};
    use super::*;

    #[test]
    fn a_message_says_what_happened_to_which_job() {
        let message = Message::of(entry(7, ended(12)));
        assert_eq!((message.key.as_str(), message.event.as_str()), ("7", "fail"));
        let expected = "Job 12 train failed\n\
                        it exited with code 3\n\
                        State: FAILED (exit_code)\n\
                        Exit code: 3\n\
                        User: ada\n\
                        Nodes: box\n\
                        Run time: 5.0 s\n\
                        Time: 2026-01-01T00:00:10Z";
        assert_eq!(message.text(), expected);
        let lost = Message::of(entry(8, node_lost()));
        assert_eq!((lost.title.as_str(), lost.urgency), ("Node box is lost", MessageUrgency::High));
    }

    #[test]
    fn no_text_of_a_user_makes_a_line_or_hides_another() {
        let mut event = ended(12);
        let job = event.job.as_mut().unwrap();
        job.name = "a\r\nBcc: eve@example.org\u{202e}\0".into();
        job.reason = "x\ny".into();
        event.text = "one\ntwo".into();
        let message = Message::of(entry(7, event));
        assert_eq!(message.title, "Job 12 a\\r\\nBcc: eve@example.org\\u{202e}\\u{0} failed");
        assert!(message.text().lines().all(|line| !line.starts_with("Bcc") && line != "two"), "{message:?}");
    }

    #[test]
    fn a_digest_counts_and_names_its_entries() {
        let entries: Vec<FeedEntry> = (1..=50).map(|number| entry(number, ended(number))).collect();
        let message = Message::digest(entries);
        assert_eq!((message.key.as_str(), message.title.as_str()), ("1-50", "50 events: 50 fail"));
        assert_eq!((message.lines.len(), message.lines[0].as_str()), (41, "Job 1 train failed"));
        assert_eq!(message.lines[40], "and 10 more: see `cohabit list`");
    }

    #[test]
    fn long_texts_are_cut() {
        let mut event = ended(12);
        event.job.as_mut().unwrap().name = "ü".repeat(100_000);
        event.text = "x".repeat(100_000);
        let message = Message::of(entry(7, event));
        assert!(message.title.len() < 210 && message.text().len() < 2_000, "{}", message.text().len());
    }
}

//! Reads faults, and the processes that caused them, from the server's log.
//!
//! ```text
//! [2026-11-21 17:54:22 Server 289] Server is handling a fatal GPU error.
//! [2026-11-21 17:54:22 Server 289] All clients belonging to error trigging process 4711 will be torn down
//! [2026-11-21 17:54:22 Server 289] The following client process have a sticky error set:
//! [2026-11-21 17:54:22 Server 289] Client {PID: 4712, Context ID: 0} on device 0 to be torn down
//! [2026-11-21 17:54:24 Server 289] Creating server context on device 0 (NVIDIA H200)
//! ```
//!
//! Clients with a sticky error are all clients of the server: the culprit and its victims. Drivers before 580
//! do not name the process that triggered the error; there, the culprit's thread may log that its client
//! "encountered a fatal GPU error". If several clients log that, none of them counts as the culprit. Older
//! drivers begin each message with `Volta MPS:`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::deadline::Deadline;

/// How many bytes of a log are read at once at most. Older parts are skipped.
const MAX_READ: u64 = 4 << 20;

/// How long to wait for the line that names the culprit of a fault that has just been logged.
const CULPRIT_WAIT: Duration = Duration::from_millis(300);

/// A fault that the server's log reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFault {
    /// The processes that the log names as culprits; none for faults other than memory faults.
    pub culprits: Vec<i32>,
    /// The log's own text.
    pub detail: String,
}

/// Follows a log that grows, is emptied, or is replaced.
#[derive(Debug)]
pub(super) struct ServerLog {
    path: PathBuf,
    read: Position,
    tracker: FaultTracker,
}

/// Which file was read last, and how far. The default is the beginning of any file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    inode: u64,
    offset: u64,
}

impl ServerLog {
    /// Reads from the beginning.
    pub(super) fn new(path: PathBuf) -> ServerLog {
        ServerLog::after(path, Position::default())
    }

    /// Reads from this position.
    pub(super) fn after(path: PathBuf, read: Position) -> ServerLog {
        ServerLog { path, read, tracker: FaultTracker::default() }
    }

    /// Reads from the present end.
    pub(super) fn at_end(path: PathBuf) -> ServerLog {
        let found = std::fs::metadata(&path);
        let read = found.map_or(Position::default(), |it| Position { inode: it.ino(), offset: it.len() });
        ServerLog::after(path, read)
    }

    /// How far it was read.
    pub(super) const fn position(&self) -> Position {
        self.read
    }

    /// The faults that were logged since the last call.
    pub(super) fn faults(&mut self) -> Vec<ServerFault> {
        self.read();
        if self.tracker.lacks_a_culprit() {
            // The server may be in the middle of logging it.
            Deadline::after(CULPRIT_WAIT).wait(|| {
                self.read();
                (!self.tracker.lacks_a_culprit()).then_some(())
            });
        }
        self.tracker.take_faults()
    }

    fn read(&mut self) {
        match self.new_lines() {
            Ok(text) => String::from_utf8_lossy(&text).lines().for_each(|line| self.tracker.read_line(line)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(log = %self.path.display(), %error, "an MPS log cannot be read"),
        }
    }

    /// Complete lines that were not read before.
    fn new_lines(&mut self) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        let found = file.metadata()?;
        if found.ino() != self.read.inode || found.len() < self.read.offset {
            self.read = Position { inode: found.ino(), offset: 0 };
        }
        self.read.offset = self.read.offset.max(found.len().saturating_sub(MAX_READ));
        file.seek(SeekFrom::Start(self.read.offset))?;
        let mut text = Vec::new();
        file.take(MAX_READ).read_to_end(&mut text)?;
        text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
        self.read.offset += text.len() as u64;
        Ok(text)
    }
}

/// The last message in a log.
pub(super) fn last_message(log: &Path) -> Option<String> {
    let text = std::fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().map(message).rfind(|message| !message.is_empty()).map(str::to_owned)
}

/// The line of the daemon's log about the last server that ended.
pub(super) fn last_exit(control_log: &Path) -> Option<String> {
    let text = std::fs::read(control_log).ok()?;
    let text = String::from_utf8_lossy(&text);
    let is_exit = |message: &&str| message.starts_with("Server ") && message.contains(" exited with status ");
    text.lines().map(message).rfind(is_exit).map(str::to_owned)
}

/// A line without its time, its process and the product name.
fn message(line: &str) -> &str {
    let message = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, message)) => message,
        None => line,
    };
    let message = message.trim();
    message.strip_prefix("Volta MPS:").unwrap_or(message).trim()
}

/// Collects the lines of each fault.
#[derive(Debug, Default)]
struct FaultTracker {
    /// Faults that are complete and not yet reported.
    complete: Vec<ServerFault>,
    current: Option<Incident>,
}

/// A fault, from its first line to the server's recovery.
#[derive(Debug, Default)]
struct Incident {
    /// Its first line was read.
    announced: bool,
    /// It was reported; later lines about it do not report it again.
    reported: bool,
    /// Processes that triggered it.
    triggered_by: BTreeSet<i32>,
    /// Processes whose clients encountered it.
    encountered_by: BTreeSet<i32>,
    messages: Vec<String>,
}

/// What a line says about faults.
#[derive(Debug, PartialEq, Eq)]
enum LineKind {
    Begin,
    TriggeredBy(i32),
    EncounteredBy(i32),
    /// The server is becoming active again.
    Recovery,
    Unrelated,
}

impl FaultTracker {
    fn read_line(&mut self, line: &str) {
        let message = message(line);
        let kind = classify_line(message);
        match kind {
            LineKind::Unrelated => return,
            LineKind::Recovery => return self.close(),
            LineKind::Begin if self.current.as_ref().is_some_and(|incident| incident.announced) => {
                self.close()
            }
            LineKind::Begin | LineKind::TriggeredBy(_) | LineKind::EncounteredBy(_) => {}
        }
        self.current.get_or_insert_default().add(message, &kind);
    }

    fn close(&mut self) {
        self.complete
            .extend(self.current.take().filter(|incident| !incident.reported).map(Incident::into_fault));
    }

    /// Whether a fault is not yet reported and its culprit may still be named.
    fn lacks_a_culprit(&self) -> bool {
        self.current.as_ref().is_some_and(|incident| !incident.reported && incident.triggered_by.is_empty())
    }

    fn take_faults(&mut self) -> Vec<ServerFault> {
        let mut faults = std::mem::take(&mut self.complete);
        if let Some(incident) = self.current.as_mut().filter(|incident| !incident.reported) {
            let rest = Incident { announced: incident.announced, reported: true, ..Incident::default() };
            faults.push(std::mem::replace(incident, rest).into_fault());
        }
        faults
    }
}

impl Incident {
    fn add(&mut self, message: &str, kind: &LineKind) {
        match kind {
            LineKind::Begin => self.announced = true,
            LineKind::TriggeredBy(process) => _ = self.triggered_by.insert(*process),
            LineKind::EncounteredBy(process) => _ = self.encountered_by.insert(*process),
            LineKind::Recovery | LineKind::Unrelated => {}
        }
        if !self.messages.iter().any(|known| known == message) {
            self.messages.push(message.to_owned());
        }
    }

    fn into_fault(self) -> ServerFault {
        let culprits = match (self.triggered_by.is_empty(), self.encountered_by.len()) {
            (false, _) => self.triggered_by,
            (true, 1) => self.encountered_by,
            (true, _) => BTreeSet::new(),
        };
        ServerFault { culprits: culprits.into_iter().collect(), detail: self.messages.join("; ") }
    }
}

fn classify_line(message: &str) -> LineKind {
    let is_trigger = message.contains("error trig") || message.contains("error-trig");
    let trigger = message.split("ing process ").nth(1).filter(|_| is_trigger).and_then(first_number);
    let before = message.split_once("encountered a fatal GPU error").map(|(before, _)| before);
    let encountered = before.filter(|before| before.starts_with("Client")).and_then(first_number);
    match (trigger, encountered) {
        (Some(process), _) => LineKind::TriggeredBy(process),
        (None, Some(process)) => LineKind::EncounteredBy(process),
        (None, None) if message.contains("handling a fatal GPU error") => LineKind::Begin,
        (None, None) if message.starts_with("Creating server context on device") => LineKind::Recovery,
        (None, None) => LineKind::Unrelated,
    }
}

fn first_number(text: &str) -> Option<i32> {
    text.split(|letter: char| !letter.is_ascii_digit()).find(|part| !part.is_empty())?.parse().ok()
}

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use super::*;

    /// Reads a log in one go and line by line. Each fault has a text, names every culprit once, and is
    /// reported once.
    pub(crate) fn check_faults(text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let (mut whole, mut by_line) = (FaultTracker::default(), FaultTracker::default());
        let mut reported = 0;
        for line in text.lines() {
            whole.read_line(line);
            by_line.read_line(line);
            reported += by_line.take_faults().into_iter().inspect(check).count();
        }
        let faults: Vec<ServerFault> = whole.take_faults();
        faults.iter().for_each(check);
        assert!(faults.len() <= reported, "asking more often reports no less");
        assert!(reported <= text.lines().count(), "a line reports one fault at most");
        assert_eq!((whole.take_faults(), by_line.take_faults()), (Vec::new(), Vec::new()));
    }

    fn check(fault: &ServerFault) {
        assert!(!fault.detail.is_empty());
        assert!(fault.culprits.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

#[cfg(test)]
mod tests;

//! What the server's log tells of faults, and whose they were.
//!
//! ```text
//! [2026-11-21 17:54:22 Server 289] Server is handling a fatal GPU error.
//! [2026-11-21 17:54:22 Server 289] All clients belonging to error trigging process 4711 will be torn down
//! [2026-11-21 17:54:22 Server 289] The following client process have a sticky error set:
//! [2026-11-21 17:54:22 Server 289] Client {PID: 4712, Context ID: 0} on device 0 to be torn down
//! [2026-11-21 17:54:24 Server 289] Creating server context on device 0 (NVIDIA H200)
//! ```
//!
//! Clients with a sticky error are the victims, the culprit among them. Drivers before 580 do not say who
//! triggered the error; there the culprit's own thread may say that its client "encountered a fatal GPU
//! error". If several say so, they name nobody. Older drivers begin each message with `Volta MPS:`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Fault;
use super::patience::Deadline;

/// What of a log is read at once at most, in bytes; what is older is of no interest any more.
const MAX_READ: u64 = 4 << 20;

/// A fault that has just begun to be told is listened to for this long.
const CULPRIT_WAIT: Duration = Duration::from_millis(300);

/// Follows a log that grows, is emptied, or is replaced.
#[derive(Debug)]
pub(super) struct ServerLog {
    path: PathBuf,
    read: Position,
    story: FaultTracker,
}

/// Which file was read last, and how far. Nothing of any, by default.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    inode: u64,
    offset: u64,
}

impl ServerLog {
    /// From the beginning.
    pub(super) fn new(path: PathBuf) -> ServerLog {
        ServerLog::after(path, Position::default())
    }

    /// What comes after this.
    pub(super) fn after(path: PathBuf, read: Position) -> ServerLog {
        ServerLog { path, read, story: FaultTracker::default() }
    }

    /// From its present end.
    pub(super) fn at_end(path: PathBuf) -> ServerLog {
        let found = std::fs::metadata(&path);
        let read = found.map_or(Position::default(), |it| Position { inode: it.ino(), offset: it.len() });
        ServerLog::after(path, read)
    }

    /// How far it was read.
    pub(super) const fn position(&self) -> Position {
        self.read
    }

    /// Faults that it tells of since the last call.
    pub(super) fn faults(&mut self) -> Vec<Fault> {
        self.read();
        if self.story.lacks_a_culprit() {
            // The server may be in the middle of it.
            Deadline::after(CULPRIT_WAIT).wait(|| {
                self.read();
                (!self.story.lacks_a_culprit()).then_some(())
            });
        }
        self.story.tell()
    }

    fn read(&mut self) {
        match self.new_lines() {
            Ok(text) => String::from_utf8_lossy(&text).lines().for_each(|line| self.story.hear(line)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(log = %self.path.display(), %error, "an MPS log cannot be read"),
        }
    }

    /// Whole lines that were not read before.
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
    text.lines().map(words).rfind(|words| !words.is_empty()).map(str::to_owned)
}

/// How the last server to end did so, as the daemon's log tells.
pub(super) fn last_exit(control_log: &Path) -> Option<String> {
    let text = std::fs::read(control_log).ok()?;
    let text = String::from_utf8_lossy(&text);
    let is_exit = |words: &&str| words.starts_with("Server ") && words.contains(" exited with status ");
    text.lines().map(words).rfind(is_exit).map(str::to_owned)
}

/// A line without its time, its process and the name of the product.
fn words(line: &str) -> &str {
    let message = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, message)) => message,
        None => line,
    };
    let message = message.trim();
    message.strip_prefix("Volta MPS:").unwrap_or(message).trim()
}

/// What was told so far.
#[derive(Debug, Default)]
struct FaultTracker {
    over: Vec<Fault>,
    present: Option<Incident>,
}

/// A fault, from its first line to the server's recovery.
#[derive(Debug, Default)]
struct Incident {
    /// Its first line was seen.
    announced: bool,
    /// It was told: what comes later of it is not told again.
    told: bool,
    /// Who triggered it.
    blamed: BTreeSet<i32>,
    /// Whose client met with it.
    named: BTreeSet<i32>,
    words: Vec<String>,
}

/// What a line has to do with faults.
#[derive(Debug, PartialEq, Eq)]
enum LineKind {
    Begins,
    Blames(i32),
    Names(i32),
    /// The server is about to serve again.
    Ends,
    Nothing,
}

impl FaultTracker {
    fn hear(&mut self, line: &str) {
        let words = words(line);
        let classify = classify(words);
        match classify {
            LineKind::Nothing => return,
            LineKind::Ends => return self.close(),
            LineKind::Begins if self.present.as_ref().is_some_and(|incident| incident.announced) => {
                self.close()
            }
            LineKind::Begins | LineKind::Blames(_) | LineKind::Names(_) => {}
        }
        self.present.get_or_insert_default().hear(words, &classify);
    }

    fn close(&mut self) {
        self.over.extend(self.present.take().filter(|incident| !incident.told).map(Incident::into_fault));
    }

    /// Whether there is a fault to be told, and more of it may come.
    fn lacks_a_culprit(&self) -> bool {
        self.present.as_ref().is_some_and(|incident| !incident.told && incident.blamed.is_empty())
    }

    fn tell(&mut self) -> Vec<Fault> {
        let mut faults = std::mem::take(&mut self.over);
        if let Some(incident) = self.present.as_mut().filter(|incident| !incident.told) {
            let rest = Incident { announced: incident.announced, told: true, ..Incident::default() };
            faults.push(std::mem::replace(incident, rest).into_fault());
        }
        faults
    }
}

impl Incident {
    fn hear(&mut self, words: &str, classify: &LineKind) {
        match classify {
            LineKind::Begins => self.announced = true,
            LineKind::Blames(process) => _ = self.blamed.insert(*process),
            LineKind::Names(process) => _ = self.named.insert(*process),
            LineKind::Ends | LineKind::Nothing => {}
        }
        if !self.words.iter().any(|said| said == words) {
            self.words.push(words.to_owned());
        }
    }

    fn into_fault(self) -> Fault {
        let culprits = match (self.blamed.is_empty(), self.named.len()) {
            (false, _) => self.blamed,
            (true, 1) => self.named,
            (true, _) => BTreeSet::new(),
        };
        Fault { culprits: culprits.into_iter().collect(), detail: self.words.join("; ") }
    }
}

fn classify(words: &str) -> LineKind {
    let triggered = words.contains("error trig") || words.contains("error-trig");
    let blamed = words.split("ing process ").nth(1).filter(|_| triggered).and_then(first_number);
    let met = words.split_once("encountered a fatal GPU error").map(|(before, _)| before);
    let named = met.filter(|before| before.starts_with("Client")).and_then(first_number);
    match (blamed, named) {
        (Some(process), _) => LineKind::Blames(process),
        (None, Some(process)) => LineKind::Names(process),
        (None, None) if words.contains("handling a fatal GPU error") => LineKind::Begins,
        (None, None) if words.starts_with("Creating server context on device") => LineKind::Ends,
        (None, None) => LineKind::Nothing,
    }
}

fn first_number(text: &str) -> Option<i32> {
    text.split(|letter: char| !letter.is_ascii_digit()).find(|part| !part.is_empty())?.parse().ok()
}

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use super::*;

    /// The lines of a log, told in one go and one by one: faults have something to say, name every culprit
    /// once, and a fault is never told twice.
    pub(crate) fn tells_of_faults(text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let (mut whole, mut by_line) = (FaultTracker::default(), FaultTracker::default());
        let mut told = 0;
        for line in text.lines() {
            whole.hear(line);
            by_line.hear(line);
            told += by_line.tell().into_iter().inspect(check).count();
        }
        let faults: Vec<Fault> = whole.tell();
        faults.iter().for_each(check);
        assert!(faults.len() <= told, "asked more often, it tells no less");
        assert!(told <= text.lines().count(), "a line tells of one fault at most");
        assert_eq!((whole.tell(), by_line.tell()), (Vec::new(), Vec::new()));
    }

    fn check(fault: &Fault) {
        assert!(!fault.detail.is_empty());
        assert!(fault.culprits.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

#[cfg(test)]
mod tests;

//! The archive of the simulated head: what has left its memory, as the text that the real one holds.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_journal::{FORMAT, decode_part, encode_part};
use cohabit_scheduler_core::{ArchivedPart, SnapshotPart};

/// Parts of submissions, by the number of the submission and their own.
#[derive(Debug, Default)]
pub(crate) struct SimArchive {
    durable: BTreeMap<(u64, u32), String>,
    /// Parts that go with the next commit: a crash loses them.
    waiting: BTreeMap<(u64, u32), String>,
    /// A planted bug: a part that is there already stays as it is.
    keeps_first: bool,
}

impl SimArchive {
    pub(crate) fn new(keeps_first: bool) -> SimArchive {
        SimArchive { keeps_first, ..SimArchive::default() }
    }

    /// Takes in a part, which becomes durable with the next commit.
    pub(crate) fn add(&mut self, part: &ArchivedPart) {
        let text = encode_part(&part.content).expect("a part has a JSON form");
        let text = String::from_utf8(text).expect("JSON is text");
        self.waiting.insert((part.number, part.part), text);
    }

    /// Makes everything durable.
    pub(crate) fn commit(&mut self) {
        for (key, text) in std::mem::take(&mut self.waiting) {
            if !(self.keeps_first && self.durable.contains_key(&key)) {
                self.durable.insert(key, text);
            }
        }
    }

    /// Loses what is not durable.
    pub(crate) fn crash(&mut self) {
        self.waiting.clear();
    }

    /// The submissions of which something is there.
    pub(crate) fn numbers(&self) -> BTreeSet<u64> {
        self.durable.keys().chain(self.waiting.keys()).map(|(number, _)| *number).collect()
    }

    /// What is there of these submissions, each with all its jobs.
    ///
    /// # Errors
    /// If what was written cannot be read.
    pub(crate) fn submissions(&self, numbers: &BTreeSet<u64>) -> Result<Vec<SnapshotPart>, String> {
        let found = numbers.iter().map(|number| self.submission(*number));
        found.filter_map(Result::transpose).collect()
    }

    fn submission(&self, number: u64) -> Result<Option<SnapshotPart>, String> {
        let range = (number, 0)..=(number, u32::MAX);
        let parts = self.durable.range(range.clone()).chain(self.waiting.range(range));
        let mut whole: Option<SnapshotPart> = None;
        for text in parts.collect::<BTreeMap<_, _>>().into_values() {
            let part = decode_part(FORMAT, text.as_bytes());
            let part = part.map_err(|error| format!("the archive cannot be read: {error}"))?;
            whole.get_or_insert_default().append(part);
        }
        Ok(whole)
    }
}

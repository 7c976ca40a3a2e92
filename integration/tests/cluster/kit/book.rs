//! A book in which a job's own ranks write down when they start and end: what happened, told by those to whom
//! it happened.
//!
//! A rank that starts looks for processes of earlier attempts that still live, and writes them down, too. So
//! the book alone proves that no attempt ran beside another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Cluster, until};

/// The book of one job.
pub(crate) struct AttemptLog {
    path: PathBuf,
    go: PathBuf,
}

/// A line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttemptLogEntry {
    /// `start`, `end`, or `beside` of a process of an earlier attempt.
    pub(crate) what: String,
    pub(crate) attempt: u32,
    pub(crate) rank: u32,
    pub(crate) pid: i32,
}

impl Cluster {
    /// A book of this name.
    pub(crate) fn book(&self, name: &str) -> AttemptLog {
        let book =
            AttemptLog { path: self.folder().join(name), go: self.folder().join(format!("{name}.go")) };
        std::fs::write(&book.path, "").unwrap();
        book
    }
}

impl AttemptLog {
    /// A script that runs until it may go, or is asked to end; it writes down both.
    pub(crate) fn script(&self) -> String {
        let (book, go) = (self.path.display(), self.go.display());
        format!(
            r#"note() {{ echo "$1 ${{2:-$COHABIT_ATTEMPT}} ${{3:-$COHABIT_RANK}} ${{4:-$$}}" >> {book}; }}
            while read -r what attempt rank pid; do
                test "$what" = start && test "$attempt" != "$COHABIT_ATTEMPT" || continue
                grep -qs {book} /proc/$pid/cmdline && note beside $attempt $rank $pid
            done < {book}
            trap 'note end; exit 143' TERM
            note start
            until test -e {go}; do sleep 0.05; done
            note end"#
        )
    }

    /// Every rank may come to its end by itself.
    pub(crate) fn go(&self) {
        std::fs::write(&self.go, "").unwrap();
    }

    pub(crate) fn entries(&self) -> Vec<AttemptLogEntry> {
        read(&self.path)
    }

    /// Who started in this attempt.
    pub(crate) fn started(&self, attempt: u32) -> Vec<AttemptLogEntry> {
        self.entries().into_iter().filter(|it| it.what == "start" && it.attempt == attempt).collect()
    }

    /// Waits until so many ranks of this attempt run; their numbers of processes.
    pub(crate) fn until_started(&self, attempt: u32, ranks: usize) -> Vec<i32> {
        let what = format!("{ranks} rank(s) of attempt {attempt} in {}", self.path.display());
        until(&what, || self.started(attempt).len() >= ranks);
        self.started(attempt).iter().map(|it| it.pid).collect()
    }

    /// All is as in a life of so many attempts of so many ranks: none was half, none was doubled, none ran
    /// beside another.
    #[track_caller]
    pub(crate) fn assert_whole(&self, attempts: u32, ranks: u32) {
        let entries = self.entries();
        assert!(entries.iter().all(|it| it.what != "beside"), "attempts met: {entries:#?}");
        let expected: Vec<(u32, u32)> =
            (1..=attempts).flat_map(|attempt| (0..ranks).map(move |rank| (attempt, rank))).collect();
        let mut started: Vec<(u32, u32)> = of(&entries, "start").map(|it| (it.attempt, it.rank)).collect();
        started.sort_unstable();
        assert_eq!(started, expected, "{entries:#?}");
        let order: Vec<u32> = of(&entries, "start").map(|it| it.attempt).collect();
        assert!(order.is_sorted(), "an attempt started before the last one was whole: {entries:#?}");
    }

    /// Every rank of this attempt had written down its end before any of the next one started.
    #[track_caller]
    pub(crate) fn assert_ended_before_next(&self, attempt: u32) {
        let entries = self.entries();
        let next = entries.iter().position(|it| it.what == "start" && it.attempt == attempt + 1);
        let before = &entries[..next.expect("there is a next attempt")];
        let ranks = |what| -> BTreeSet<u32> {
            of(before, what).filter(|it| it.attempt == attempt).map(|it| it.rank).collect()
        };
        assert_eq!(ranks("end"), ranks("start"), "{entries:#?}");
    }
}

fn of<'a>(entries: &'a [AttemptLogEntry], what: &'a str) -> impl Iterator<Item = &'a AttemptLogEntry> {
    entries.iter().filter(move |it| it.what == what)
}

fn read(path: &Path) -> Vec<AttemptLogEntry> {
    let text = std::fs::read_to_string(path).unwrap();
    let entry = |line: &str| {
        let [what, attempt, rank, pid] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line:?} in {}", path.display())
        };
        let number = |text: &str| text.parse().unwrap();
        AttemptLogEntry {
            what: what.into(),
            attempt: number(attempt) as u32,
            rank: number(rank) as u32,
            pid: number(pid),
        }
    };
    text.lines().map(entry).collect()
}

//! A log file in which a job's own ranks record their starts and ends.
//!
//! A rank that starts also records every process of an earlier attempt that is still alive. The file alone
//! therefore proves that no two attempts ran at the same time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Cluster, until};

/// The log file of one job.
pub(crate) struct AttemptLog {
    path: PathBuf,
    go: PathBuf,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttemptLogEntry {
    /// `start`, `end`, or `beside` of a process of an earlier attempt.
    pub(crate) what: String,
    pub(crate) attempt: u32,
    pub(crate) rank: u32,
    pub(crate) pid: i32,
}

impl Cluster {
    /// An empty log of this name.
    pub(crate) fn attempt_log(&self, name: &str) -> AttemptLog {
        let log = AttemptLog { path: self.folder().join(name), go: self.folder().join(format!("{name}.go")) };
        std::fs::write(&log.path, "").unwrap();
        log
    }
}

impl AttemptLog {
    /// A script that runs until `go` or SIGTERM, and records its start and end.
    pub(crate) fn script(&self) -> String {
        let (log, go) = (self.path.display(), self.go.display());
        format!(
            r#"note() {{ echo "$1 ${{2:-$COHABIT_ATTEMPT}} ${{3:-$COHABIT_RANK}} ${{4:-$$}}" >> {log}; }}
            while read -r what attempt rank pid; do
                test "$what" = start && test "$attempt" != "$COHABIT_ATTEMPT" || continue
                grep -qs {log} /proc/$pid/cmdline && note beside $attempt $rank $pid
            done < {log}
            trap 'note end; exit 143' TERM
            note start
            until test -e {go}; do sleep 0.05; done
            note end"#
        )
    }

    /// Lets every rank end by itself.
    pub(crate) fn go(&self) {
        std::fs::write(&self.go, "").unwrap();
    }

    pub(crate) fn entries(&self) -> Vec<AttemptLogEntry> {
        read(&self.path)
    }

    /// The ranks that started in this attempt.
    pub(crate) fn started(&self, attempt: u32) -> Vec<AttemptLogEntry> {
        self.entries().into_iter().filter(|it| it.what == "start" && it.attempt == attempt).collect()
    }

    /// Waits until this many ranks of the attempt run. Returns their process ids.
    pub(crate) fn until_started(&self, attempt: u32, ranks: usize) -> Vec<i32> {
        let what = format!("{ranks} rank(s) of attempt {attempt} in {}", self.path.display());
        until(&what, || self.started(attempt).len() >= ranks);
        self.started(attempt).iter().map(|it| it.pid).collect()
    }

    /// Checks that exactly this many attempts of this many ranks ran: none partly, none twice, none at the
    /// same time as another.
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

    /// Checks that every rank of this attempt recorded its end before any rank of the next one started.
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

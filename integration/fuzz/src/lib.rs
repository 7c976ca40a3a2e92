//! Hostile input: for each place where bytes of strangers are read, what must hold whatever they are.
//!
//! The promises themselves stand beside the parsers, in the `fuzzing` module of each crate, so that they see
//! what is private there; here they get names and a limit of memory. `tests/mutations.rs` holds them against
//! the seeds in `corpus` and against mutations of those; `run` lets libFuzzer look for more.

mod cluster;
mod memory;
#[cfg(test)]
mod seeds;

use std::cell::OnceCell;

use cohabit_head::fuzzing as runtime;
use cohabit_host::fuzzing as worker;
use cohabit_net::MAX_FRAME;

/// A promise about any bytes.
#[derive(Clone, Copy)]
pub struct FuzzTarget {
    /// Its name, and that of its folder in `corpus`.
    pub name: &'static str,
    property: fn(&[u8]),
    /// The most memory that it may take, in bytes, however few bytes ask for it.
    at_least: usize,
    /// And for each byte that does.
    for_each: usize,
}

impl FuzzTarget {
    const fn new(name: &'static str, property: fn(&[u8])) -> FuzzTarget {
        FuzzTarget { name, property, at_least: 2 << 20, for_each: 200 }
    }

    /// One that also needs so much for itself.
    const fn with_room(self, at_least: usize) -> FuzzTarget {
        FuzzTarget { at_least, ..self }
    }

    /// The one of this name.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub const fn named(name: &str) -> FuzzTarget {
        let mut rest: &[FuzzTarget] = &TARGETS;
        while let [target, others @ ..] = rest {
            if is_same(target.name.as_bytes(), name.as_bytes()) {
                return *target;
            }
            rest = others;
        }
        panic!("there is no such target: they are listed in integration/fuzz/src/lib.rs")
    }

    /// Whether it takes so long that a test tries it less often.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        ["cluster", "journal-file", "models"].contains(&self.name)
    }

    /// Holds the promise against these bytes.
    ///
    /// # Panics
    /// If it is broken, or takes more memory than it may.
    pub fn check(&self, bytes: &[u8]) {
        let peak = memory::peak_memory_of(|| (self.property)(bytes));
        let most = self.at_least + self.for_each * bytes.len();
        assert!(peak <= most, "{} bytes took {peak} bytes of memory, and {most} are the most", bytes.len());
    }
}

/// As `==`, which the compiler cannot do yet.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([a, one @ ..], [b, other @ ..]) => *a == *b && is_same(one, other),
        _ => false,
    }
}

/// All of them.
pub const TARGETS: [FuzzTarget; 22] = [
    FuzzTarget::new("frames", cohabit_net::fuzzing::frames),
    // Room is made ahead for every list, up to 1 MiB, and lists lie in lists.
    FuzzTarget::new("messages", cohabit_net::fuzzing::messages).with_room(MAX_FRAME),
    FuzzTarget::new("hello", cohabit_net::fuzzing::hello),
    FuzzTarget::new("token", cohabit_net::fuzzing::token),
    FuzzTarget::new("token-store", cohabit_net::fuzzing::token_store),
    FuzzTarget::new("cluster", cluster::requests),
    FuzzTarget::new("journal-entries", runtime::journal_entries),
    FuzzTarget::new("journal-file", journal_file).with_room(64 << 20),
    FuzzTarget::new("progress-lines", worker::progress_lines),
    FuzzTarget::new("output", worker::output),
    FuzzTarget::new("log-records", worker::log_records),
    FuzzTarget::new("rank-files", worker::rank_files),
    FuzzTarget::new("server-log", worker::server_log),
    FuzzTarget::new("co-location-table", cohabit_profiler::fuzzing::co_location_table),
    FuzzTarget::new("config", cohabit::fuzzing::config),
    FuzzTarget::new("descriptions", cohabit::fuzzing::descriptions),
    FuzzTarget::new("scripts", cohabit::fuzzing::scripts),
    FuzzTarget::new("values", cohabit::fuzzing::values),
    FuzzTarget::new("traces", cohabit_sim::fuzzing::traces),
    FuzzTarget::new("clusters", cohabit_sim::fuzzing::clusters),
    FuzzTarget::new("measurements", cohabit_predict::interference::fuzzing::measurements),
    FuzzTarget::new("models", cohabit_predict::interference::fuzzing::models),
];

/// In a folder of its own on each thread.
fn journal_file(bytes: &[u8]) {
    thread_local! {
        static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
    }
    FOLDER.with(|folder| {
        let folder =
            folder.get_or_init(|| tempfile::tempdir().expect("there is a place for temporary files"));
        runtime::journal_file(folder.path(), bytes);
    });
}

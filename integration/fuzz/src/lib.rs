//! Fuzz targets: for each parser of outside bytes, the properties that hold for any input.
//!
//! The properties themselves are in the `fuzzing` module of each crate, where they see private items. Here
//! they get names and memory limits. `tests/mutations.rs` checks them against the seeds in `corpus` and
//! against mutations of these; `run` starts libFuzzer.

mod applications;
mod cluster;
mod manifests;
mod memory;
#[cfg(test)]
mod seeds;
mod stores;

use std::cell::OnceCell;

use cohabit_head::fuzzing as runtime;
use cohabit_host::fuzzing as worker;
use cohabit_net::MAX_FRAME;

/// A property that holds for any bytes.
#[derive(Clone, Copy)]
pub struct FuzzTarget {
    /// Its name, and that of its directory in `corpus`.
    pub name: &'static str,
    property: fn(&[u8]),
    /// Memory that it may take for any input, in bytes.
    at_least: usize,
    /// Additional memory for each byte of input.
    for_each: usize,
}

impl FuzzTarget {
    const fn new(name: &'static str, property: fn(&[u8])) -> FuzzTarget {
        FuzzTarget { name, property, at_least: 2 << 20, for_each: 200 }
    }

    /// A target that needs this much memory in addition.
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

    /// Whether it is so slow that tests try fewer mutations.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        ["cluster", "journal-file", "models"].contains(&self.name)
    }

    /// Checks the property for these bytes.
    ///
    /// # Panics
    /// If the property does not hold, or the target takes more memory than it may.
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
pub const TARGETS: [FuzzTarget; 27] = [
    FuzzTarget::new("frames", cohabit_net::fuzzing::frames),
    // Lists are preallocated, up to 1 MiB each, and may be nested.
    FuzzTarget::new("messages", cohabit_net::fuzzing::messages).with_room(MAX_FRAME),
    FuzzTarget::new("hello", cohabit_net::fuzzing::hello),
    FuzzTarget::new("token", cohabit_net::fuzzing::token),
    FuzzTarget::new("token-store", cohabit_net::fuzzing::token_store),
    FuzzTarget::new("cluster", cluster::requests),
    // A list in a frame is preallocated, up to 1 MiB each.
    FuzzTarget::new("applications", applications::actions).with_room(MAX_FRAME),
    FuzzTarget::new("manifests", manifests::manifests),
    FuzzTarget::new("objects", cohabit_memory::fuzzing::objects),
    FuzzTarget::new("journal-entries", runtime::journal_entries),
    FuzzTarget::new("journal-file", journal_file).with_room(64 << 20),
    FuzzTarget::new("progress-lines", worker::progress_lines),
    FuzzTarget::new("output", worker::output),
    FuzzTarget::new("log-records", worker::log_records),
    FuzzTarget::new("rank-files", worker::rank_files),
    FuzzTarget::new("server-log", worker::server_log),
    FuzzTarget::new("co-location-table", cohabit_profiler::fuzzing::co_location_table),
    FuzzTarget::new("config", cohabit_cli::fuzzing::config),
    FuzzTarget::new("descriptions", cohabit_cli::fuzzing::descriptions),
    FuzzTarget::new("scripts", cohabit_cli::fuzzing::scripts),
    FuzzTarget::new("values", cohabit_cli::fuzzing::values),
    FuzzTarget::new("traces", cohabit_sim::fuzzing::traces),
    FuzzTarget::new("clusters", cohabit_sim::fuzzing::clusters),
    FuzzTarget::new("measurements", cohabit_predict::interference::fuzzing::measurements),
    FuzzTarget::new("models", cohabit_predict::interference::fuzzing::models),
    FuzzTarget::new("sensitivity-tables", cohabit_predict::sensitivity::fuzzing::sensitivity_tables),
    FuzzTarget::new("stored-agents", cohabit_predict::maifs::fuzzing::stored_agents),
];

/// Runs in a directory of its own on each thread.
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

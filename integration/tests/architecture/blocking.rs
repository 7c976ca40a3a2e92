//! Nothing blocks an async thread: files, processes and `/proc` are accessed on blocking threads, through
//! `cohabit_actor::blocking`.

use std::path::Path;

use cohabit_structure::{BlockingCall, Crate};

/// Crates with async code that runs for long.
const CRATES: [&str; 5] = ["scheduler/head", "worker/daemon", "worker/executor", "client/sdk", "runtime/net"];

/// Calls that may block, as the room, the function and the call. All are the worker's: each touches a few
/// small files of one rank, or runs once at a start.
const ALLOWED: [(&str, &str, &str); 25] = [
    ("worker", "clear", ".identity"),
    ("worker", "clear", "with_environment"),
    ("worker", "dial", ".inventory"),
    ("worker", "dial", ".next_key"),
    ("worker", "discard", "remove_directory"),
    ("worker", "flush", ".is_acknowledged"),
    ("worker", "handle", ".note"),
    ("worker", "hold", ".kill_if_due"),
    ("worker", "look", "memory"),
    ("worker", "lost", ".write_ended"),
    ("worker", "lost", "files::read"),
    ("worker", "not_started", ".write_ended"),
    ("worker", "of", "is_alive"),
    ("worker", "read", ".is_dir"),
    ("worker", "recover", ".is_acknowledged"),
    ("worker", "recover", "ranks_in"),
    ("worker", "run", ".is_over"),
    ("worker", "run", "ProgressFile::create"),
    ("worker", "run", "launch::launch"),
    ("worker", "start", "Isolation::establish"),
    ("worker", "start", "StateDirectory::open"),
    ("worker", "work", ".redirect_stderr"),
    ("worker", "work", ".write_identity"),
    ("worker", "work", "drop_inherited_state"),
    ("worker", "write_outcome", ".write_ended"),
];

#[test]
fn async_code_calls_nothing_that_blocks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|it| it.join("Cargo.lock").exists());
    let mut refused = Vec::new();
    for folder in CRATES {
        let source = root.expect("the workspace has a root").join(folder).join("src");
        let file = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|it| it.exists());
        let Some(file) = file else { continue };
        let read = Crate::read(&file).expect("the crate is readable");
        let row = |it: &BlockingCall| {
            format!("{folder}/src/{}: {} calls {}", it.file.display(), it.function, it.call)
        };
        refused.extend(read.blocking_calls().iter().filter(|it| !is_allowed(folder, it)).map(row));
    }
    assert!(refused.is_empty(), "pass these to cohabit_actor::blocking:\n{refused:#?}");
}

fn is_allowed(folder: &str, found: &BlockingCall) -> bool {
    ALLOWED.iter().any(|(room, function, call)| {
        folder.starts_with(room) && found.function == *function && found.call == *call
    })
}

//! Nothing blocks an async thread: files, processes and `/proc` are accessed on blocking threads, through
//! `cohabit_actor::blocking`.

use std::collections::BTreeSet;
use std::path::Path;

use cohabit_structure::{BlockingCall, Crate};

/// Crates with async code that runs for long.
const CRATES: [&str; 5] = ["scheduler/head", "worker/daemon", "worker/executor", "client/sdk", "runtime/net"];

/// Calls that may block, as the crate's directory, the function and the call, each with its reason here.
const ALLOWED: [(&str, &str, &str); 3] = [
    // Sends a message to the driver; a method of the same name blocks elsewhere.
    ("worker/daemon", "dial", ".ask"),
    // An executor holds one rank: while it starts that rank, nothing else waits for its thread.
    ("worker/executor", "run_rank", "launch::launch"),
    // Before the first rank, when nothing else runs yet.
    ("worker/executor", "run_ranks", "drop_inherited_state"),
];

#[test]
fn async_code_calls_nothing_that_blocks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|it| it.join("Cargo.lock").exists());
    let (mut refused, mut used) = (Vec::new(), BTreeSet::new());
    for folder in CRATES {
        let source = root.expect("the workspace has a root").join(folder).join("src");
        let file = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|it| it.exists());
        let Some(file) = file else { continue };
        let read = Crate::read(&file).expect("the crate is readable");
        for found in read.blocking_calls() {
            let BlockingCall { file, function, call } = &found;
            match ALLOWED.iter().find(|row| **row == (folder, function.as_str(), call.as_str())) {
                Some(row) => drop(used.insert(row)),
                None => refused.push(format!("{folder}/src/{}: {function} calls {call}", file.display())),
            }
        }
    }
    assert!(refused.is_empty(), "pass these to cohabit_actor::blocking:\n{refused:#?}");
    let unused: Vec<_> = ALLOWED.iter().filter(|row| !used.contains(row)).collect();
    assert!(unused.is_empty(), "these rows allow nothing any more: {unused:#?}");
}

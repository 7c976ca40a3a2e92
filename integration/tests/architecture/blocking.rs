//! Nothing blocks an async thread: files, processes and `/proc` are accessed on blocking threads, through
//! `cohabit_actor::blocking`.

use std::path::Path;

use cohabit_structure::Crate;

/// Crates with async code that runs for long.
const CRATES: [&str; 5] =
    ["scheduler/head", "worker/daemon", "worker/executor", "client/sdk", "runtime/net"];

/// Calls that may block, as `CRATE/FILE FUNCTION CALL`, each with the reason.
const ALLOWED: [(&str, &str); 0] = [];

#[test]
fn async_code_calls_nothing_that_blocks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|it| it.join("Cargo.lock").exists());
    let mut found = Vec::new();
    for folder in CRATES {
        let source = root.expect("the workspace has a root").join(folder).join("src");
        let file = ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|it| it.exists());
        // A crate that does not exist yet has no code that blocks.
        let Some(file) = file else { continue };
        let read = Crate::read(&file).expect("the crate is readable");
        let row = |(file, call): (&Path, &cohabit_structure::BlockingCall)| {
            format!("{folder}/src/{} {} {}", file.display(), call.function, call.call)
        };
        found.extend(read.blocking_calls().map(row));
    }
    let refused: Vec<&String> =
        found.iter().filter(|row| !ALLOWED.iter().any(|(allowed, _)| allowed == *row)).collect();
    assert!(refused.is_empty(), "pass these to cohabit_actor::blocking:\n{refused:#?}");
    let stale = ALLOWED.iter().filter(|(allowed, _)| !found.iter().any(|row| row == allowed));
    assert_eq!(stale.count(), 0, "remove rows from ALLOWED that are not found any more");
}

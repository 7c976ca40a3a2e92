//! The actor runtime offers what the daemons use, and nothing else.

use std::path::{Path, PathBuf};

use cohabit_structure::Crate;

/// Items that no caller names because it gets them from another item's signature.
const BY_SIGNATURE: [(&str, &str); 2] =
    [("Shutdown", "what Context::shutdown returns"), ("TellError", "the error of Address::tell")];

/// The crates that use the actor runtime.
const CALLERS: [&str; 4] = ["scheduler/head", "worker/daemon", "worker/executor", "client/cli"];

fn read(folder: &str) -> Crate {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|it| it.join("Cargo.lock").exists());
    let source: PathBuf = root.expect("the workspace has a root").join(folder).join("src/lib.rs");
    Crate::read(&source).expect("the crate is readable")
}

#[test]
fn every_public_item_of_the_actor_runtime_has_a_caller() {
    let callers: Vec<Crate> = CALLERS.into_iter().map(read).collect();
    let mut unused = read("runtime/actor").without_callers("cohabit_actor", &callers);
    for (name, reason) in BY_SIGNATURE {
        assert!(unused.remove(name), "{name} has a caller now: remove it from the list ({reason})");
    }
    assert!(unused.is_empty(), "remove what nobody outside cohabit-actor uses: {unused:?}");
}

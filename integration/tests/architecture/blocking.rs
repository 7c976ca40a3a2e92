//! Nothing blocks an async thread: files, processes and `/proc` are accessed on blocking threads, through
//! `cohabit_actor::blocking`.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_structure::{BlockingCall, BlockingFunctions, Crate, UsedCrates};
use serde_json::Value;

use crate::workspace::{Workspace, direct, root_file};

/// Crates with async code that runs for long. A command of the command line ends soon, and waits for nothing
/// else meanwhile.
const CRATES: [&str; 8] = [
    "cohabit-head",
    "cohabit-worker-daemon",
    "cohabit-executor",
    "cohabit-client",
    "cohabit-net",
    "cohabit-web",
    "cohabit-notify",
    "cohabit",
];

/// Calls that may block, as the crate, the function and the call, each with its reason here.
const ALLOWED: &[(&str, &str, &str)] = &[
    // An executor holds one rank and has one thread, because every thread costs memory for every rank. While
    // it starts the rank or writes its end, nothing else waits.
    ("cohabit-executor", "run_ranks", "drop_inherited_state"),
    ("cohabit-executor", "run_ranks", ".redirect_stderr"),
    ("cohabit-executor", "run_ranks", ".write_identity"),
    ("cohabit-executor", "run_ranks", ".create_bell"),
    ("cohabit-executor", "run_rank", ".is_over"),
    ("cohabit-executor", "run_rank", "ProgressFile::create"),
    ("cohabit-executor", "run_rank", "launch::launch"),
    ("cohabit-executor", "finish", ".poll_progress"),
    ("cohabit-executor", "write_outcome", ".write_ended"),
    ("cohabit-executor", "remove_read", ".has_progress"),
];

/// Every function of the workspace, and whether it blocks, by the names of packages.
#[derive(Default)]
struct KnownFunctions {
    by_package: BTreeMap<String, BlockingFunctions>,
}

impl KnownFunctions {
    /// Reads the packages that this one uses, and what those use, first.
    fn learn(&mut self, workspace: &Workspace, name: &str) {
        let package = workspace.members()[name];
        for used in direct(package).into_iter().filter(|it| workspace.members().contains_key(it)) {
            if !self.by_package.contains_key(used) {
                self.learn(workspace, used);
            }
        }
        let Some(file) = root_file(package) else { return };
        let read = Crate::read(&file).expect("the crate is readable");
        let functions = read.blocking_functions(&self.used_by(package));
        self.by_package.insert(name.to_owned(), functions);
    }

    /// What the direct dependencies of a package offer.
    fn used_by(&self, package: &Value) -> UsedCrates<'_> {
        let known = |name: &str| Some((name.replace('-', "_"), self.by_package.get(name)?));
        direct(package).into_iter().filter_map(known).collect()
    }
}

#[test]
fn async_code_calls_nothing_that_blocks() {
    let workspace = Workspace::read();
    let (mut refused, mut used) = (Vec::new(), BTreeSet::new());
    let mut functions = KnownFunctions::default();
    for name in CRATES {
        functions.learn(&workspace, name);
        let package = workspace.members()[name];
        let read = Crate::read(&root_file(package).expect("a library")).expect("the crate is readable");
        for found in read.blocking_calls(&functions.used_by(package)) {
            let BlockingCall { file, function, call } = &found;
            match ALLOWED.iter().find(|row| **row == (name, function.as_str(), call.as_str())) {
                Some(row) => drop(used.insert(row)),
                None => refused.push(format!("{name}, {}: {function} calls {call}", file.display())),
            }
        }
    }
    assert!(refused.is_empty(), "pass these to cohabit_actor::blocking:\n{refused:#?}");
    let unused: Vec<_> = ALLOWED.iter().filter(|row| !used.contains(row)).collect();
    assert!(unused.is_empty(), "these rows allow nothing any more: {unused:#?}");
}

//! One name has one meaning: no two crates define types of the same name that others can see.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_structure::Crate;

use crate::workspace::{Workspace, root_file};

/// Names that mean the same in every crate of the Rust ecosystem.
const USUAL: [&str; 9] =
    ["Config", "Context", "Error", "Event", "Effect", "Message", "Options", "Parameters", "Result"];

/// Stand-ins carry the names of what they stand in for; training programs are examples that nobody builds on.
const LEFT_OUT: [&str; 3] = ["cohabit-fakes", "cohabit-training", "cohabit-examples"];

#[test]
fn a_type_that_others_can_see_is_defined_in_one_crate() {
    let workspace = Workspace::read();
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, package) in workspace.members() {
        let Some(root) = root_file(package).filter(|_| !LEFT_OUT.contains(&name)) else { continue };
        let read = Crate::read(&root).unwrap();
        for (_, definition) in read.definitions().filter(|(module, it)| it.is_type && !module.is_frozen()) {
            crates.entry(definition.name.clone()).or_default().insert(name.to_owned());
        }
    }
    let twice: Vec<_> =
        crates.into_iter().filter(|(name, at)| at.len() > 1 && !USUAL.contains(&name.as_str())).collect();
    assert!(twice.is_empty(), "types with two homes: {twice:#?}");
}

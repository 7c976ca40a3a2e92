//! The map in docs/ARCHITECTURE.md names every crate and its folder, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use crate::workspace::{Workspace, folder};

#[test]
fn the_map_names_every_crate_and_its_folder() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | `"));
    let mapped: BTreeMap<String, String> = rows
        .filter(|(name, _)| name.starts_with("cohabit"))
        .map(|(name, rest)| (name.to_owned(), rest.split('`').next().unwrap_or_default().to_owned()))
        .collect();
    let workspace = Workspace::read();
    let there: BTreeMap<String, String> = workspace
        .members()
        .into_iter()
        .map(|(name, package)| (name.to_owned(), folder(package).display().to_string()))
        .collect();
    assert_eq!(mapped, there, "the code map in docs/ARCHITECTURE.md (left) and the workspace (right)");
}

//! The map in docs/ARCHITECTURE.md names every crate and its directory, and nothing else; the guides for
//! contributors name only files that exist.

use std::collections::BTreeMap;
use std::path::Path;

use crate::workspace::{Workspace, folder};

#[test]
fn the_map_names_every_crate_and_its_directory() {
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

/// Paths from the root of the repository between backticks, without the files that the text tells to create.
fn paths(text: &str) -> Vec<&str> {
    let created: Vec<&str> = text
        .match_indices("Create `")
        .filter_map(|(at, it)| text[at + it.len()..].split('`').next())
        .collect();
    let rooms = ["runtime/", "worker/", "scheduler/", "client/", "examples/", "integration/", "docs/"];
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path =
        |it: &&str| rooms.iter().any(|room| it.starts_with(room)) && !it.contains(char::is_whitespace);
    quoted.filter(is_path).filter(|it| !created.contains(it)).collect()
}

#[test]
fn the_guides_name_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for guide in ["CONTRIBUTING.md", "docs/ARCHITECTURE.md"] {
        // Fenced blocks hold an odd number of backticks.
        let text = std::fs::read_to_string(root.join(guide)).unwrap().replace("```", "");
        let named = paths(&text);
        assert!(named.len() > 10, "{guide} names {} files", named.len());
        let missing: Vec<&str> = named.into_iter().filter(|it| !root.join(it).exists()).collect();
        assert_eq!(missing, <[&str; 0]>::default(), "{guide} names files that do not exist");
    }
}

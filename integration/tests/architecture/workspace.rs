//! What `cargo metadata` says of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub(crate) struct Workspace {
    metadata: Value,
}

impl Workspace {
    pub(crate) fn read() -> Workspace {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
        // Without the platform, cargo would want to fetch what only other systems need.
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked", "--manifest-path", manifest])
            .args(["--filter-platform", &host()])
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Workspace { metadata: serde_json::from_slice(&output.stdout).expect("cargo prints JSON") }
    }

    /// Our packages by name.
    pub(crate) fn members(&self) -> BTreeMap<&str, &Value> {
        let ours = self.metadata["workspace_members"].as_array().unwrap();
        let packages = self.metadata["packages"].as_array().unwrap();
        let members = packages.iter().filter(|package| ours.contains(&package["id"]));
        members.map(|package| (package["name"].as_str().unwrap(), package)).collect()
    }

    /// Names of everything that a package's normal dependencies bring along.
    pub(crate) fn tree(&self, name: &str) -> BTreeSet<String> {
        let nodes = self.metadata["resolve"]["nodes"].as_array().unwrap();
        let by_id: BTreeMap<&str, &Value> =
            nodes.iter().map(|node| (node["id"].as_str().unwrap(), node)).collect();
        let mut todo = vec![self.members()[name]["id"].as_str().unwrap()];
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                let deps = by_id[id]["deps"].as_array().unwrap();
                todo.extend(deps.iter().filter(|dep| is_normal(dep)).map(|dep| dep["pkg"].as_str().unwrap()));
            }
        }
        let packages = self.metadata["packages"].as_array().unwrap();
        let named = packages.iter().filter(|package| seen.contains(package["id"].as_str().unwrap()));
        named.map(|package| package["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The platform that this test was built for.
fn host() -> String {
    let output = Command::new(env!("CARGO")).args(["-vV"]).output().expect("cargo runs");
    let said = String::from_utf8(output.stdout).expect("cargo prints text");
    said.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host").to_owned()
}

fn is_normal(dep: &Value) -> bool {
    dep["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null())
}

/// Names of a package's own normal dependencies.
pub(crate) fn direct(package: &Value) -> BTreeSet<&str> {
    let dependencies = package["dependencies"].as_array().unwrap();
    dependencies.iter().filter(|it| it["kind"].is_null()).map(|it| it["name"].as_str().unwrap()).collect()
}

/// The directory of a package, relative to the root of the repository.
pub(crate) fn folder(package: &Value) -> PathBuf {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap();
    let folder = manifest.parent().unwrap().canonicalize().unwrap();
    folder.strip_prefix(root).expect("a package lies in the repository").to_owned()
}

/// The root file of a package's library, or of its program where it has no library; none for a package of
/// several programs.
pub(crate) fn root_file(package: &Value) -> Option<PathBuf> {
    let source = Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("src");
    ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|it| it.exists())
}

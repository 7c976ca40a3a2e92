//! The table of allowed dependencies, held against what `cargo metadata` says.
//!
//! Shells know cores, cores know words, words know nothing; nothing but fuzzing depends on the binary; the
//! SDK stays light.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Which of our crates each of them may use. See docs/ARCHITECTURE.md.
const ALLOWED: [(&str, &[&str]); 20] = [
    ("cohabit-types", &[]),
    ("cohabit-policy", &["cohabit-types"]),
    ("cohabit-predict", &["cohabit-policy", "cohabit-types"]),
    ("cohabit-scheduler-core", &["cohabit-types", "cohabit-policy"]),
    ("cohabit-worker-core", &["cohabit-types"]),
    ("cohabit-actor", &[]),
    ("cohabit-wire", &["cohabit-types"]),
    ("cohabit-net", &["cohabit-types", "cohabit-wire"]),
    ("cohabit-client", &["cohabit-types", "cohabit-net"]),
    (
        "cohabit-head",
        &[
            "cohabit-types",
            "cohabit-scheduler-core",
            "cohabit-policy",
            "cohabit-actor",
            "cohabit-net",
            "cohabit-predict",
        ],
    ),
    ("cohabit-gpu", &["cohabit-types"]),
    (
        "cohabit-worker-daemon",
        &["cohabit-types", "cohabit-worker-core", "cohabit-gpu", "cohabit-actor", "cohabit-net"],
    ),
    ("cohabit-fakes", &[]),
    ("cohabit-structure", &[]),
    (
        "cohabit",
        &[
            "cohabit-types",
            "cohabit-client",
            "cohabit-head",
            "cohabit-worker-daemon",
            "cohabit-examples",
            "cohabit-predict",
            "cohabit-sim",
        ],
    ),
    (
        "cohabit-sim",
        &[
            "cohabit-types",
            "cohabit-policy",
            "cohabit-scheduler-core",
            "cohabit-worker-core",
            "cohabit-predict",
        ],
    ),
    ("cohabit-examples", &["cohabit-client"]),
    ("cohabit-benches", &["cohabit-types", "cohabit-net"]),
    ("cohabit-integration", &["cohabit-sim", "cohabit-client", "cohabit-fakes"]),
    (
        "cohabit-fuzz",
        &[
            "cohabit",
            "cohabit-types",
            "cohabit-policy",
            "cohabit-scheduler-core",
            "cohabit-net",
            "cohabit-head",
            "cohabit-worker-daemon",
            "cohabit-predict",
            "cohabit-sim",
        ],
    ),
];

/// Crates that read no clock and know no runtime.
const PURE: [&str; 5] =
    ["cohabit-types", "cohabit-policy", "cohabit-scheduler-core", "cohabit-worker-core", "cohabit-sim"];

/// What the user of this project asked for by name.
const REQUIRED_PACKAGES: [&str; 9] = [
    "tokio",
    "tarpc",
    "serde",
    "bincode",
    "dashmap",
    "candle-core",
    "nvml-wrapper",
    "uuid",
    "tracing-subscriber",
];

struct Workspace {
    metadata: Value,
}

impl Workspace {
    fn read() -> Workspace {
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
    fn members(&self) -> BTreeMap<&str, &Value> {
        let ours = self.metadata["workspace_members"].as_array().unwrap();
        let packages = self.metadata["packages"].as_array().unwrap();
        let members = packages.iter().filter(|package| ours.contains(&package["id"]));
        members.map(|package| (package["name"].as_str().unwrap(), package)).collect()
    }

    /// Names of everything that a package's normal dependencies bring along.
    fn tree(&self, name: &str) -> BTreeSet<String> {
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
fn direct(package: &Value) -> BTreeSet<&str> {
    let dependencies = package["dependencies"].as_array().unwrap();
    dependencies.iter().filter(|it| it["kind"].is_null()).map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let workspace = Workspace::read();
    let members = workspace.members();
    let listed: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, members.keys().copied().collect(), "every crate has a row in the table");
    for (name, allowed) in ALLOWED {
        let ours: BTreeSet<&str> =
            direct(members[name]).into_iter().filter(|it| listed.contains(it)).collect();
        let unexpected: Vec<&&str> = ours.iter().filter(|it| !allowed.contains(it)).collect();
        assert!(unexpected.is_empty(), "{name} may not use {unexpected:?}");
    }
}

#[test]
fn pure_crates_bring_no_runtime_and_are_held_pure_by_lint() {
    let workspace = Workspace::read();
    for name in PURE {
        let tree = workspace.tree(name);
        for banned in ["tokio", "mio", "tarpc", "rustls", "rusqlite"] {
            assert!(!tree.contains(banned), "{name} brings {banned}");
        }
        let manifest = workspace.members()[name]["manifest_path"].as_str().unwrap();
        let lints = std::fs::read_to_string(Path::new(manifest).with_file_name("clippy.toml")).expect(name);
        for banned in ["Instant::now", "SystemTime::now", "thread::sleep", "env::var", "HashMap", "HashSet"] {
            assert!(lints.contains(banned), "the clippy.toml of {name} does not ban {banned}");
        }
    }
}

#[test]
fn the_sdk_stays_light() {
    let tree = Workspace::read().tree("cohabit-client");
    for banned in
        ["candle-core", "cohabit-scheduler-core", "cohabit-head", "cohabit-policy", "rusqlite", "clap"]
    {
        assert!(!tree.contains(banned), "the SDK brings {banned}");
    }
}

#[test]
fn candle_and_nvml_stay_where_they_belong() {
    let workspace = Workspace::read();
    let users = |library: &str| -> Vec<String> {
        let members = workspace.members();
        members
            .iter()
            .filter(|(_, it)| direct(it).contains(library))
            .map(|(name, _)| (*name).to_owned())
            .collect()
    };
    for user in users("candle-core") {
        assert!(["cohabit-predict", "cohabit-examples"].contains(&user.as_str()), "{user} uses candle");
    }
    assert_eq!(users("nvml-wrapper"), ["cohabit-gpu"]);
    assert_eq!(users("bincode"), ["cohabit-wire"]);
}

#[test]
fn the_named_packages_are_really_used() {
    let workspace = Workspace::read();
    let members = workspace.members();
    for package in REQUIRED_PACKAGES {
        let path = package.replace('-', "_");
        let used = members.iter().filter(|(_, it)| direct(it).contains(package)).any(|(_, member)| {
            let folder = Path::new(member["manifest_path"].as_str().unwrap()).with_file_name("src");
            sources(&folder).iter().any(|source| source.contains(&format!("{path}::")))
        });
        assert!(used, "no crate uses {package}");
    }
}

fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a crate has sources");
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(std::fs::read_to_string(path).unwrap());
        }
    }
    found
}

//! The layers of the workspace: which crate may use which, and which modules may use each other.
//!
//! The top-level directories are rooms in layers: a crate uses crates of its own room and of the rooms below
//! it. Inside a crate no two directories use each other in a circle, and no circle has more than two files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

#[path = "architecture/blocking.rs"]
mod blocking;
#[path = "architecture/callers.rs"]
mod callers;
#[path = "architecture/map.rs"]
mod map;
#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/names.rs"]
mod names;
#[path = "architecture/workspace.rs"]
mod workspace;

use std::collections::BTreeSet;
use std::path::Path;

use workspace::{Workspace, direct, folder};

/// The top-level directories from the ground up. The last two are one layer: neither uses the other.
const ROOMS: [&str; 6] = ["runtime", "worker", "scheduler", "client", "examples", "integration"];

/// Crates that are named differently from their directories: those that users' programs name.
const NAMED_DIFFERENTLY: [(&str, &str); 3] =
    [("cohabit-client", "client/sdk"), ("cohabit", "client/application"), ("cohabit-examples", "examples")];

/// Which of our crates each of them may use. See docs/ARCHITECTURE.md.
const ALLOWED: &[(&str, &[&str])] = &[
    ("cohabit-types", &[]),
    ("cohabit-store", &["cohabit-types"]),
    ("cohabit-transfer", &["cohabit-types", "cohabit-wire"]),
    ("cohabit-fair-share", &["cohabit-types"]),
    ("cohabit-policy", &["cohabit-fair-share", "cohabit-types"]),
    ("cohabit-tables", &[]),
    ("cohabit-predict", &["cohabit-policy", "cohabit-tables", "cohabit-types"]),
    ("cohabit-scheduler-core", &["cohabit-fair-share", "cohabit-types", "cohabit-policy"]),
    ("cohabit-journal", &["cohabit-fair-share", "cohabit-types", "cohabit-policy", "cohabit-scheduler-core"]),
    ("cohabit-worker-core", &["cohabit-types"]),
    ("cohabit-actor", &[]),
    ("cohabit-application-core", &["cohabit-types"]),
    ("cohabit-memory", &["cohabit-wire"]),
    ("cohabit-wire", &["cohabit-types"]),
    ("cohabit-net", &["cohabit-types", "cohabit-wire"]),
    ("cohabit-settings", &[]),
    ("cohabit-client", &["cohabit-types", "cohabit-store", "cohabit-net", "cohabit-settings"]),
    ("cohabit-macros", &[]),
    (
        "cohabit",
        &[
            "cohabit-types",
            "cohabit-wire",
            "cohabit-net",
            "cohabit-memory",
            "cohabit-application-core",
            "cohabit-client",
            "cohabit-macros",
        ],
    ),
    (
        "cohabit-head",
        &[
            "cohabit-types",
            "cohabit-store",
            "cohabit-scheduler-core",
            "cohabit-journal",
            "cohabit-policy",
            "cohabit-actor",
            "cohabit-net",
            "cohabit-wire",
            "cohabit-predict",
        ],
    ),
    ("cohabit-gpu", &["cohabit-types"]),
    ("cohabit-host", &["cohabit-types", "cohabit-transfer", "cohabit-worker-core", "cohabit-gpu"]),
    (
        "cohabit-executor",
        &[
            "cohabit-types",
            "cohabit-transfer",
            "cohabit-actor",
            "cohabit-worker-core",
            "cohabit-gpu",
            "cohabit-host",
        ],
    ),
    ("cohabit-profiler", &["cohabit-types", "cohabit-gpu", "cohabit-host"]),
    (
        "cohabit-worker-daemon",
        &[
            "cohabit-types",
            "cohabit-store",
            "cohabit-transfer",
            "cohabit-worker-core",
            "cohabit-gpu",
            "cohabit-host",
            "cohabit-actor",
            "cohabit-net",
        ],
    ),
    ("cohabit-fakes", &[]),
    ("cohabit-structure", &[]),
    ("cohabit-console", &["cohabit-types", "cohabit-client", "cohabit-settings"]),
    (
        "cohabit-lab",
        &[
            "cohabit-types",
            "cohabit-console",
            "cohabit-predict",
            "cohabit-sim",
            "cohabit-profiler",
            "cohabit-head",
        ],
    ),
    ("cohabit-http", &[]),
    ("cohabit-documents", &["cohabit-client", "cohabit-console"]),
    ("cohabit-job-arguments", &["cohabit-client", "cohabit-console", "cohabit-settings"]),
    (
        "cohabit-python",
        &[
            "cohabit-client",
            "cohabit-console",
            "cohabit-documents",
            "cohabit-job-arguments",
            "cohabit-settings",
            "cohabit-transfer",
        ],
    ),
    ("cohabit-web", &["cohabit-client", "cohabit-console", "cohabit-http"]),
    ("cohabit-export", &["cohabit-client", "cohabit-http", "cohabit-settings"]),
    ("cohabit-notify", &["cohabit-client", "cohabit-console", "cohabit-settings"]),
    ("cohabit-training", &[]),
    (
        "cohabit-cli",
        &[
            "cohabit-types",
            "cohabit-actor",
            "cohabit-transfer",
            "cohabit-client",
            "cohabit-console",
            "cohabit-documents",
            "cohabit-job-arguments",
            "cohabit-settings",
            "cohabit-head",
            "cohabit-worker-daemon",
            "cohabit-executor",
            "cohabit-gpu",
            "cohabit-lab",
            "cohabit-training",
            "cohabit-http",
            "cohabit-web",
            "cohabit-export",
            "cohabit-notify",
        ],
    ),
    (
        "cohabit-sim",
        &[
            "cohabit-types",
            "cohabit-fair-share",
            "cohabit-policy",
            "cohabit-scheduler-core",
            "cohabit-journal",
            "cohabit-worker-core",
            "cohabit-application-core",
            "cohabit-predict",
            "cohabit-tables",
        ],
    ),
    ("cohabit-examples", &["cohabit-training", "cohabit-client"]),
    ("cohabit-benches", &["cohabit-types", "cohabit-net"]),
    (
        "cohabit-integration",
        &["cohabit", "cohabit-structure", "cohabit-sim", "cohabit-client", "cohabit-fakes"],
    ),
    (
        "cohabit-fuzz",
        &[
            "cohabit-cli",
            "cohabit-types",
            "cohabit-store",
            "cohabit-memory",
            "cohabit-application-core",
            "cohabit-policy",
            "cohabit-scheduler-core",
            "cohabit-net",
            "cohabit-head",
            "cohabit-host",
            "cohabit-profiler",
            "cohabit-predict",
            "cohabit-sim",
        ],
    ),
];

/// Crates that read no clock and know no runtime.
const PURE: [&str; 7] = [
    "cohabit-types",
    "cohabit-policy",
    "cohabit-scheduler-core",
    "cohabit-journal",
    "cohabit-worker-core",
    "cohabit-application-core",
    "cohabit-sim",
];

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

#[test]
fn crates_use_only_what_the_table_allows() {
    let workspace = Workspace::read();
    let members = workspace.members();
    let listed: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, members.keys().copied().collect(), "every crate has a row in the table");
    for (name, allowed) in ALLOWED {
        let ours: BTreeSet<&str> =
            direct(members[*name]).into_iter().filter(|it| listed.contains(it)).collect();
        let unexpected: Vec<&&str> = ours.iter().filter(|it| !allowed.contains(it)).collect();
        assert!(unexpected.is_empty(), "{name} may not use {unexpected:?}");
    }
}

#[test]
fn layers_depend_only_on_lower_ones() {
    let workspace = Workspace::read();
    let members = workspace.members();
    let layer = |name: &str| {
        let path = folder(members[name]);
        let room = path.components().next().unwrap().as_os_str().to_str().unwrap().to_owned();
        ROOMS.iter().position(|it| *it == room).unwrap_or_else(|| panic!("{name} lies in no room: {room}"))
    };
    let mut upwards = Vec::new();
    for (name, package) in &members {
        let used = direct(package).into_iter().filter(|it| members.contains_key(it));
        upwards.extend(used.filter(|it| layer(it) > layer(name)).map(|it| format!("{name} uses {it}")));
    }
    assert!(upwards.is_empty(), "arrows that point up: {upwards:#?}");
}

#[test]
fn crates_are_named_after_their_directories() {
    let workspace = Workspace::read();
    for (name, package) in workspace.members() {
        let path = folder(package);
        let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let expected =
            [format!("cohabit-{}", parts[parts.len() - 1]), format!("cohabit-{}", parts.join("-"))];
        let listed = NAMED_DIFFERENTLY.iter().any(|(it, at)| *it == name && Path::new(at) == path);
        let named = listed || expected.iter().any(|it| it == name);
        assert!(named, "{name} lies in {}: name it {}", path.display(), expected.join(" or "));
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
    let workspace = Workspace::read();
    for sdk in ["cohabit-client", "cohabit"] {
        let tree = workspace.tree(sdk);
        for banned in
            ["candle-core", "cohabit-scheduler-core", "cohabit-head", "cohabit-policy", "rusqlite", "clap"]
        {
            assert!(!tree.contains(banned), "{sdk} brings {banned}");
        }
    }
}

#[test]
fn the_lab_depends_neither_on_the_sdk_nor_on_the_binary() {
    let workspace = Workspace::read();
    let members = workspace.members();
    for banned in ["cohabit-cli", "cohabit-client", "tokio"] {
        assert!(!direct(members["cohabit-lab"]).contains(banned), "cohabit-lab uses {banned}");
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
        assert!(
            ["cohabit-predict", "cohabit-training", "cohabit-examples"].contains(&user.as_str()),
            "{user} uses candle"
        );
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

//! The walk of a developer: the first programs of client/sdk/README.md and docs/APPLICATIONS.md and the lines
//! of the README, in crates of their own beside the repository.
//!
//! The whole programs in `examples/examples` are run by `cluster/sdk.rs` and `examples/tests`.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::PathBuf;

use nix::unistd::getuid;

use crate::document::{Section, root};
use crate::kit::{Walk, programs, python};

/// What `cargo` needs besides `PATH`, with the places of its own below the home of whoever runs the tests.
fn let_cargo_run(walk: &mut Walk) {
    let home = std::env::var("HOME").unwrap_or_default();
    for (name, default) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        walk.set(name, &std::env::var(name).unwrap_or_else(|_| format!("{home}/{default}")));
    }
    for name in ["CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG", "RUSTUP_TOOLCHAIN"] {
        if let Ok(value) = std::env::var(name) {
            walk.set(name, &value);
        }
    }
    // What is built of crates that are no part of the repository need not be built again, nor fetched.
    walk.set("CARGO_TARGET_DIR", &programs().parent().unwrap().display().to_string());
    walk.set("CARGO_NET_OFFLINE", "true");
    // Optimized builds take long, and print the same.
    walk.substitute("cargo run --release", "cargo run --quiet");
    let place = own_folder();
    fs::remove_dir(walk.path("")).unwrap();
    symlink(&place, walk.root().join("work")).unwrap();
    symlink(root(), walk.path("cohabit")).unwrap();
}

/// An empty directory that nobody else may write to, beside no workspace: `cargo new` would add crates to it.
/// Crates at another place are other crates, so the same place each time keeps what was built of them.
fn own_folder() -> PathBuf {
    let own = getuid();
    let place = std::env::temp_dir().join(format!("cohabit-walks-of-{own}"));
    if let Ok(known) = fs::symlink_metadata(&place) {
        assert!(known.is_dir() && known.uid() == own.as_raw(), "{} is somebody else's", place.display());
        fs::remove_dir_all(&place).unwrap();
    }
    DirBuilder::new().mode(0o700).create(&place).unwrap();
    place
}

/// Makes a crate with these dependencies, with the versions of the repository.
fn begin_crate(walk: &mut Walk, section: &Section, dependencies: &str, program: &str) {
    let [new]: [String; 1] = section.commands_in_prose("cargo new").try_into().unwrap();
    walk.step(&new);
    let folder = new.rsplit(' ').next().unwrap();
    let manifest = walk.read(&format!("{folder}/Cargo.toml"));
    assert!(manifest.contains("[dependencies]\n"), "{manifest}");
    walk.write(&format!("{folder}/Cargo.toml"), &manifest.replace("[dependencies]\n", dependencies));
    walk.write(&format!("{folder}/src/main.rs"), program);
    walk.write(&format!("{folder}/Cargo.lock"), &fs::read_to_string(root().join("Cargo.lock")).unwrap());
}

/// The program of the SDK, and the lines of the README as another program.
fn first_job(walk: &mut Walk) {
    let section = Section::of("client/sdk/README.md", "## A first program");
    let (dependencies, program) = (section.block_with("[dependencies]"), section.block_with("async fn main"));
    begin_crate(walk, &section, &dependencies, &program);
    walk.write("train/train.py", "import os\nprint(os.environ['COHABIT_SHARE'])\n");
    let readme = Section::of("README.md", "## From a Rust program").block_with("JobBuilder");
    walk.write(
        "train/examples/readme.rs",
        &format!(
            "use cohabit_client::{{Client, JobBuilder, types::Bytes}};\n\
             #[tokio::main(flavor = \"current_thread\")]\n\
             async fn main() -> anyhow::Result<()> {{\n{readme}\n\
             println!(\"{{}} {{}}\", ended.id, ended.state);\nOk(())\n}}\n"
        ),
    );
    let [up]: [String; 1] = section.commands_in_prose("cohabit up").try_into().unwrap();
    let [run]: [String; 1] = section.commands_in_prose("cargo run").try_into().unwrap();
    walk.step(&up);
    walk.step_in("train", &run);
    walk.ran("cargo run").prints("COMPLETED: it exited with code 0");
    assert_eq!(walk.ok("cohabit logs last"), "0.5\n", "the share that the program requests");
    let printed = walk.ok("cd train && cargo run --quiet --example readme");
    let (job, state) = printed.trim().split_once(' ').unwrap();
    assert_eq!(state, "COMPLETED");
    assert!(walk.ok(&format!("cohabit show {job}")).contains("20 GiB"));

    let facts = Section::of("client/sdk/README.md", "## Good to know");
    facts.says("An error in a file names its line");
    walk.write("train/cohabit.toml", "# mine\ntoken_file = 'x'\n");
    walk.try_command("cd train && cargo run --quiet")
        .ends_with(1, "cohabit.toml:2: there is no setting 'token_file'");
    fs::remove_file(walk.path("train/cohabit.toml")).unwrap();
    facts.says("`COHABIT_HEAD` and `COHABIT_TOKEN_FILE`, then `head`");
    let token = walk.root().join("var/lib/cohabit/worker.token");
    let wrong = format!("COHABIT_HEAD={} COHABIT_TOKEN_FILE={}", walk.address(), token.display());
    walk.try_command(&format!("cd train && {wrong} cargo run --quiet")).ends_with(1, "has the role worker");
}

/// The first program whose functions run on the cluster.
fn first_application(walk: &mut Walk) {
    let section = Section::of("docs/APPLICATIONS.md", "## A first program");
    let both = section.block_with("[dependencies]");
    let (dependencies, program) = both.split_once("// src/main.rs\n").unwrap();
    begin_crate(walk, &section, dependencies, program);
    let [run]: [String; 1] = section.commands_in_prose("cargo run").try_into().unwrap();
    walk.step_in("count", &run);
    section.says("It prints `7`");
    assert_eq!(walk.ran("cargo run").stdout, "7\n");
    section.says("They are jobs like any other: `cohabit list` shows all of them");
    assert!(walk.ok("cohabit list --all").contains("count"));
    let seeing = Section::of("docs/APPLICATIONS.md", "## Seeing it");
    seeing.says("`logs NAME` and `explain NAME` tell the number of its last run");
    let told = walk.try_command("cohabit logs count");
    assert_eq!(told.code, 66, "{told:?}");
    let (_, named) = told.stderr.split_once("cohabit logs ").unwrap_or_else(|| panic!("{told:?}"));
    let root: String = named.chars().take_while(char::is_ascii_digit).collect();
    section.says("one job for `main`");
    seeing.says("`logs 12` has the output of all its jobs");
    assert!(walk.ok(&format!("cohabit logs {root}")).contains("] 7\n"));
    section.says("shows what `main` prints and exits with its code");
    walk.write("count/src/main.rs", &program.replace("Ok(())", "Err(\"no luck\".into())"));
    walk.try_command("cd count && cargo run --quiet").ends_with(1, "no luck");
}

#[test]
fn a_developer_runs_the_first_programs_of_the_documents() {
    let Some(python) = python() else { return };
    let mut walk = Walk::new("desk", &[]);
    walk.install("python", &python);
    let_cargo_run(&mut walk);
    first_job(&mut walk);
    first_application(&mut walk);
    walk.finish();
}

//! No circles: files of a crate may use each other only in pairs, and only inside one directory.

use std::fmt::Write;
use std::path::Path;

use cohabit_structure::{Circle, Crate, circles};

use crate::workspace::{Workspace, root_file};

/// Two files of one directory may use each other: a parent and its child often do.
const MOST_FILES: usize = 2;

#[test]
fn no_circle_of_modules_crosses_directories_or_has_more_than_two_files() {
    let workspace = Workspace::read();
    let mut report = String::new();
    for (name, package) in workspace.members() {
        for circle in root_file(package).map_or(Vec::new(), |root| circles_of(&root)) {
            if circle.files.len() > MOST_FILES || circle.folders().len() > 1 {
                describe(name, &circle, &mut report);
            }
        }
    }
    assert!(report.is_empty(), "files that use each other in a circle:\n{report}");
}

fn circles_of(root: &Path) -> Vec<Circle> {
    circles(&Crate::read(root).unwrap().arrows())
}

fn describe(name: &str, circle: &Circle, report: &mut String) {
    writeln!(report, "{name}: {} files", circle.files.len()).unwrap();
    for ((from, to), names) in &circle.arrows {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        writeln!(report, "    {} -> {}: {}", from.display(), to.display(), names.join(", ")).unwrap();
    }
}

/// A crate of these files, with `lib.rs` as its root.
fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn a_circle_is_found_through_re_exports_macros_and_nested_modules() {
    let folder = written(&[
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a.rs", "use crate::b::inner::B; pub struct A(B);"),
        ("b.rs", "pub mod inner;"),
        ("b/inner.rs", "pub struct B; fn f() { println!(\"{}\", crate::c::C); }"),
        ("c.rs", "use crate::A; pub const C: Option<A> = None;"),
    ]);
    let found = circles_of(&folder.path().join("lib.rs"));
    let files: Vec<Vec<&str>> =
        found.iter().map(|it| it.files.iter().map(|file| file.to_str().unwrap()).collect()).collect();
    assert_eq!(files, [["a.rs", "b/inner.rs", "c.rs"]]);
    assert_eq!(found[0].folders().len(), 2);
}

#[test]
fn tests_and_method_calls_are_no_arrows() {
    let folder = written(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A; impl A { fn f(b: &B) { b.g(); } }"),
        ("b.rs", "pub struct B; impl B { pub fn g(&self) {} } #[cfg(test)] mod tests { use crate::a::A; }"),
    ]);
    assert_eq!(circles_of(&folder.path().join("lib.rs")), []);
}

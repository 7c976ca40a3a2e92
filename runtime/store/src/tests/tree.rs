//! Folders that come back as they were, and what is left of them.

use std::os::unix::fs::MetadataExt;

use cohabit_types::{Bytes, ContentPiece};

use super::*;
use crate::{FileSelection, ManifestFile, StoreKind, StoreLimits, hash_of};

struct Kit {
    folder: tempfile::TempDir,
    store: ContentStore,
    manifest: Manifest,
}

impl Kit {
    /// A manifest with these files and links, stored.
    fn new(files: &[(&str, &str, bool)], links: &[(&str, &str)]) -> Kit {
        let folder = tempfile::tempdir().unwrap();
        let limits = StoreLimits { bytes: Bytes(1 << 20), files: 100 };
        let store = ContentStore::open(&folder.path().join("store"), StoreKind::Cache, limits).unwrap();
        let mut listed = Vec::new();
        for (path, text, is_executable) in files {
            let (file, size) = (hash_of(text.as_bytes()), text.len() as u64);
            store.put(&[ContentPiece { file, size, offset: 0, bytes: text.as_bytes().into() }]).unwrap();
            let content = FileContent::Stored { hash: file, size, is_executable: *is_executable };
            listed.push(ManifestFile { path: (*path).into(), content });
        }
        listed.extend(links.iter().map(|(path, to)| ManifestFile {
            path: (*path).into(),
            content: FileContent::Link((*to).into()),
        }));
        Kit { folder, store, manifest: Manifest::new(FileSelection::All, listed).unwrap() }
    }

    fn usual() -> Kit {
        Kit::new(
            &[("train.py", "print(1)", false), ("bin/run.sh", "#!/bin/sh", true), ("a/b/c.txt", "c", false)],
            &[("data", "/srv/data"), ("a/up", "../train.py")],
        )
    }

    fn written(&self, owner: Option<(u32, u32)>) -> PathBuf {
        let tree = self.folder.path().join("tree");
        write_tree(&self.manifest, &self.store, &tree, Path::new(""), owner).unwrap();
        tree
    }
}

#[test]
fn a_folder_comes_back_as_it_was() {
    let kit = Kit::usual();
    let tree = kit.written(None);
    let mode = |path: &str| fs::symlink_metadata(tree.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(fs::read_to_string(tree.join("train.py")).unwrap(), "print(1)");
    assert_eq!(fs::read_to_string(tree.join("a/b/c.txt")).unwrap(), "c");
    assert_eq!(fs::read_link(tree.join("data")).unwrap(), Path::new("/srv/data"));
    assert_eq!(fs::read_to_string(tree.join("a/up")).unwrap(), "print(1)");
    assert_eq!((mode("train.py"), mode("bin/run.sh"), mode("a/b")), (0o644, 0o755, 0o755));
    assert_eq!(fs::metadata(&tree).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(matches!(
        write_tree(&kit.manifest, &kit.store, &tree, Path::new(""), None),
        Err(ContentError::Io { action: "create", .. })
    ));
}

/// A job may start in a directory of which nothing is in the snapshot.
#[test]
fn the_directory_to_start_in_is_there() {
    for (directory, is_made) in
        [("", true), ("runs/1", true), ("a/new", true), ("a/b", true), ("data/x", false)]
    {
        let kit = Kit::usual();
        let tree = kit.folder.path().join("tree");
        write_tree(&kit.manifest, &kit.store, &tree, Path::new(directory), None).unwrap();
        assert_eq!(tree.join(directory).is_dir(), is_made, "{directory}");
        assert!(remove_unchanged(&kit.manifest, &tree).unwrap(), "{directory} is left");
    }
}

#[test]
fn all_of_it_belongs_to_its_user() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root may give files away");
        return;
    }
    let tree = Kit::usual().written_by_owner();
    for path in ["", "train.py", "bin", "bin/run.sh", "a", "a/b", "a/b/c.txt", "data", "a/up"] {
        let found = fs::symlink_metadata(tree.1.join(path)).unwrap();
        assert_eq!((found.uid(), found.gid()), (61_300, 61_301), "{path}");
    }
}

impl Kit {
    fn written_by_owner(self) -> (Kit, PathBuf) {
        let tree = self.written(Some((61_300, 61_301)));
        (self, tree)
    }
}

#[test]
fn a_file_that_is_not_stored_is_named() {
    let kit = Kit::usual();
    kit.store.make_room(Bytes(1 << 20), 100, &BTreeSet::new());
    let tree = kit.folder.path().join("tree");
    let result = write_tree(&kit.manifest, &kit.store, &tree, Path::new(""), None);
    assert!(matches!(result, Err(ContentError::Missing(hash)) if hash == hash_of(b"c")));
}

#[test]
fn an_unchanged_folder_goes_away() {
    let kit = Kit::usual();
    let tree = kit.written(None);
    assert!(remove_unchanged(&kit.manifest, &tree).unwrap());
    assert!(!tree.exists());
    assert!(remove_unchanged(&kit.manifest, &tree).unwrap(), "there is nothing to do");
}

#[test]
fn what_a_job_wrote_stays() {
    let kit = Kit::usual();
    let tree = kit.written(None);
    fs::write(tree.join("train.py"), "print(2)").unwrap();
    fs::create_dir(tree.join("runs")).unwrap();
    fs::write(tree.join("runs/loss.csv"), "1").unwrap();
    fs::write(tree.join("a/b/new"), "").unwrap();
    fs::remove_file(tree.join("data")).unwrap();
    symlink("/elsewhere", tree.join("data")).unwrap();
    assert!(!remove_unchanged(&kit.manifest, &tree).unwrap());
    let left = |path: &str| fs::symlink_metadata(tree.join(path)).is_ok();
    assert!(left("runs/loss.csv") && left("a/b/new") && left("data"));
    assert_eq!(fs::read_to_string(tree.join("train.py")).unwrap(), "print(2)", "as long as before");
    assert!(!left("bin") && !left("a/b/c.txt") && !left("a/up"));
}

/// A job may replace a directory by a link to somebody else's.
#[test]
fn links_lead_nowhere() {
    let kit = Kit::usual();
    let tree = kit.written(None);
    let outside = kit.folder.path().join("outside");
    fs::create_dir_all(outside.join("b")).unwrap();
    fs::rename(tree.join("a/b/c.txt"), outside.join("b/c.txt")).unwrap();
    fs::remove_dir_all(tree.join("a")).unwrap();
    symlink(&outside, tree.join("a")).unwrap();
    assert!(!remove_unchanged(&kit.manifest, &tree).unwrap());
    assert!(outside.join("b/c.txt").exists() && tree.join("a").is_symlink());
    let link = kit.folder.path().join("link");
    symlink(&outside, &link).unwrap();
    assert!(remove_unchanged(&kit.manifest, &link).is_err());
    assert!(outside.join("b/c.txt").exists());
}

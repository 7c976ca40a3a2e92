//! Which files of a state directory a backup holds.
//!
//! The list names what is saved, so that a file which somebody else keeps in the directory (a worker's state,
//! a log, a damaged journal that was set aside) is neither saved nor restored.

use std::fs;
use std::io;
use std::path::{Component, Path};

use super::error::BackupError;

/// The journal, the history, the archive and the feed.
pub(super) const JOURNAL: &str = "journal.sqlite";

/// The files with a name of their own, besides the journal: keys, tokens, secrets, and the id of the cluster.
const FILES: [&str; 10] = [
    "cluster",
    "tls/ca.pem",
    "tls/ca.key",
    "tls/head.pem",
    "tls/head.key",
    "tokens.json",
    "application-key",
    "node-credentials.json",
    "admin.token",
    "worker.token",
];

/// Without these, a head would come back under another identity.
pub(super) const REQUIRED: [&str; 4] = [JOURNAL, "tls/ca.pem", "tls/ca.key", "tokens.json"];

/// Stored code of users, and trained models.
const TREES: [&str; 2] = ["code", "interference"];

/// How deep these are.
const DEEPEST: usize = 6;

/// Files in one backup.
pub(super) const MOST_FILES: usize = 2_000_000;

/// Whether a backup may hold a file of this path.
pub(super) fn is_saved(path: &str) -> bool {
    path == JOURNAL || FILES.contains(&path) || is_code(path) || is_model(path)
}

/// `code/<user>/user` and `code/<user>/ab/cdef...`; what is still arriving is no part of it.
fn is_code(path: &str) -> bool {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["code", user, "user"] => is_hexadecimal(user, 64),
        ["code", user, first, rest] => {
            is_hexadecimal(user, 64) && is_hexadecimal(first, 2) && is_hexadecimal(rest, 62)
        }
        _ => false,
    }
}

fn is_model(path: &str) -> bool {
    let Some(inside) = path.strip_prefix("interference/") else { return false };
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.chars().all(is_plain)
    };
    inside.split('/').count() < DEEPEST && inside.split('/').all(is_name)
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

/// The files to save besides the journal, in a fixed order.
pub(super) fn list(state: &Path) -> Result<Vec<String>, BackupError> {
    let is_file = |path: &str| fs::symlink_metadata(state.join(path)).is_ok_and(|it| it.is_file());
    let mut found: Vec<String> = FILES.into_iter().filter(|path| is_file(path)).map(str::to_owned).collect();
    for tree in TREES {
        walk(state, tree, &mut found)?;
    }
    Ok(found)
}

fn walk(state: &Path, folder: &str, found: &mut Vec<String>) -> Result<(), BackupError> {
    let path = state.join(folder);
    let entries = match fs::read_dir(&path) {
        // A model or the code of a user that was given up meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(BackupError::io(&path))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(BackupError::io(&path))?;
        let Ok(kind) = entry.file_type() else { continue };
        names.extend(entry.file_name().into_string().ok().map(|name| (name, kind)));
    }
    names.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, kind) in names {
        let inside = format!("{folder}/{name}");
        if kind.is_dir() && Path::new(&inside).components().count() < DEEPEST {
            walk(state, &inside, found)?;
        } else if kind.is_file() && is_saved(&inside) {
            found.push(inside);
        }
        if found.len() > MOST_FILES {
            return Err(BackupError::TooManyFiles { state: state.to_owned(), most: MOST_FILES });
        }
    }
    Ok(())
}

/// The directories above a file of a backup, the outermost first.
pub(super) fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Whether nothing in the path leads elsewhere. Holds for every saved path; checked once more where it is
/// joined to a directory.
pub(super) fn stays_inside(path: &str) -> bool {
    Path::new(path).components().all(|it| matches!(it, Component::Normal(_)))
}

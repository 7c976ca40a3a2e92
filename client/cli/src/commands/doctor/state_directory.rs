//! The state directory: its owner, permissions and free space.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access, geteuid};

use super::findings::Finding;

const CHECK: &str = "state folder";
const SECRETS: &str = "secrets";
const ROOM: &str = "disk";
/// Logs fill less free space than this quickly.
const MIN_FREE_BYTES: u64 = 1 << 30;

pub(super) fn check(folder: &Path) -> Vec<Finding> {
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => vec![privacy(folder, &metadata), secrets(folder), room(folder)],
        Ok(_) => {
            vec![Finding::error(CHECK, format!("{} is not a directory", folder.display()), "move it away")]
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            vec![Finding::ok(
                CHECK,
                format!("{} does not exist yet; the first start creates it", folder.display()),
            )]
        }
        Err(error) => vec![Finding::error(
            CHECK,
            format!("cannot access {} ({error})", folder.display()),
            "grant yourself access, or choose another directory with --state",
        )],
    }
}

fn privacy(folder: &Path, metadata: &fs::Metadata) -> Finding {
    let shown = folder.display();
    if metadata.uid() != geteuid().as_raw() {
        return Finding::error(
            CHECK,
            format!("{shown} belongs to another user"),
            "run as that user, or choose another directory with --state",
        );
    }
    // Execute permission for others is allowed: accounts of jobs traverse the directory, but cannot list it.
    if metadata.mode() & 0o066 != 0 {
        return Finding::error(
            CHECK,
            format!("{shown} is accessible to other users"),
            format!("chmod 700 {shown}"),
        );
    }
    match access(folder, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => Finding::ok(CHECK, format!("{shown} is private")),
        Err(error) => {
            Finding::error(CHECK, format!("{shown} is not writable ({error})"), "mount it read-write")
        }
    }
}

/// Files with keys or tokens must not be readable by others.
fn secrets(folder: &Path) -> Finding {
    let exposed: Vec<_> = files_in(folder)
        .chain(files_in(&folder.join("tls")))
        .filter(|path| is_secret(path))
        .filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o077 != 0))
        .map(|path| path.display().to_string())
        .collect();
    match exposed.is_empty() {
        true => Finding::ok(SECRETS, "only this user can read keys and tokens"),
        false => {
            let files = exposed.join(" ");
            Finding::error(SECRETS, format!("other users can read {files}"), format!("chmod 600 {files}"))
        }
    }
}

fn files_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_secret(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_key = extension.is_some_and(|extension| ["token", "key"].contains(&extension));
    is_key || path.file_name().is_some_and(|name| name == "tokens.json")
}

fn room(folder: &Path) -> Finding {
    match statvfs(folder) {
        Ok(system) => {
            let free = cohabit_client::types::Bytes(system.blocks_available() * system.fragment_size());
            match free.0 >= MIN_FREE_BYTES {
                true => Finding::ok(ROOM, format!("{free} free for state and logs")),
                false => Finding::warning(
                    ROOM,
                    format!("only {free} free"),
                    "free some space, or choose a directory on another disk with --state",
                ),
            }
        }
        Err(error) => {
            Finding::warning(ROOM, format!("cannot determine the free space ({error})"), "check it with df")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::findings::Diagnosis;
    use super::*;

    fn statuses(folder: &Path) -> Vec<(&'static str, Diagnosis)> {
        check(folder).iter().map(|finding| (finding.check, finding.status)).collect()
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn an_accessible_directory_and_readable_tokens_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("admin.token");
        fs::write(&token, "secret").unwrap();
        set_mode(folder.path(), 0o755);
        set_mode(&token, 0o644);
        let found = statuses(folder.path());
        assert_eq!(found[..2], [(CHECK, Diagnosis::Error), (SECRETS, Diagnosis::Error)]);

        set_mode(folder.path(), 0o700);
        set_mode(&token, 0o600);
        let found = statuses(folder.path());
        assert_eq!(found[..2], [(CHECK, Diagnosis::Ok), (SECRETS, Diagnosis::Ok)]);
    }

    #[test]
    fn a_missing_directory_is_ok_but_a_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(statuses(&folder.path().join("none")), [(CHECK, Diagnosis::Ok)]);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(statuses(&file), [(CHECK, Diagnosis::Error)]);
    }
}

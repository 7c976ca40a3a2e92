//! Archives of checkpoints, made and unpacked by the `tar` of this host.
//!
//! It runs with the rights of the user whose files they are, and of no other: in their directory they may
//! have put links to anything. Times of modification are kept, because programs look for the latest file.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_types::Bytes;
use nix::unistd::geteuid;
use tokio::process::{Child, Command};
use tokio::time::{interval, timeout};

use crate::search_path::search_path;

/// How often the size of an archive that is being made is looked at.
const SIZE_INTERVAL: Duration = Duration::from_millis(50);

/// How long an archive may take to be made or unpacked.
const TIME_LIMIT: Duration = Duration::from_secs(540);

/// What is shown of the messages of a `tar` that failed.
const LONGEST_MESSAGE: u64 = 1_024;

/// Why there is no archive, or it was not unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum TarError {
    #[error("they take more than {0}, which is the most that is carried (checkpoint-limit of the head)")]
    TooLarge(Bytes),
    #[error("tar did not end within {0} s")]
    TooSlow(u64),
    #[error("tar cannot be run: {0}")]
    NotRun(io::Error),
    #[error("tar failed ({0}): {1}")]
    Failed(ExitStatus, String),
    #[error("the disk: {0}")]
    Disk(#[from] io::Error),
}

/// An archive in a file that has no name.
#[derive(Debug)]
pub(super) struct CheckpointArchive {
    pub(super) file: File,
    pub(super) size: u64,
}

/// Packs the content of this directory into a file without a name in another one; nothing if it is empty, or
/// does not exist.
pub(super) async fn pack(
    folder: &Path,
    scratch: &Path,
    limit: Bytes,
) -> Result<Option<CheckpointArchive>, TarError> {
    let (of, scratch) = (folder.to_owned(), scratch.to_owned());
    let prepared = blocking(move || {
        if is_empty(&of)? {
            return Ok(None);
        }
        Ok(Some((
            fs::symlink_metadata(&of)?,
            tempfile::tempfile_in(&scratch)?,
            tempfile::tempfile_in(scratch)?,
        )))
    });
    let prepared: io::Result<_> = prepared.await;
    let Some((of, file, messages)) = prepared? else { return Ok(None) };
    let mut command = tar(&["-c", "-f", "-", "."], folder, owner(&of));
    command.stdout(file.try_clone()?).stderr(messages.try_clone()?).stdin(Stdio::null());
    let packing = command.spawn().map_err(TarError::NotRun)?;
    let size = await_bounded(packing, &file, messages, limit).await?;
    Ok(Some(CheckpointArchive { file, size }))
}

/// Unpacks an archive into an empty directory of this user and group.
pub(super) async fn unpack(
    mut archive: File,
    folder: &Path,
    owner: Option<(u32, u32)>,
) -> Result<(), TarError> {
    let folder_of_messages = folder.parent().unwrap_or(folder).to_owned();
    let (archive, messages) = blocking(move || {
        archive.rewind()?;
        Ok::<_, io::Error>((archive, tempfile::tempfile_in(folder_of_messages)?))
    })
    .await?;
    // `-o`: the files belong to whoever unpacks them; `-p`: with the permissions that they had.
    let mut command = tar(&["-x", "-o", "-p", "-f", "-"], folder, owner);
    command.stdin(archive).stdout(Stdio::null()).stderr(messages.try_clone()?);
    let mut unpacking = command.spawn().map_err(TarError::NotRun)?;
    let ended = timeout(TIME_LIMIT, unpacking.wait()).await.map_err(|_| too_slow())?;
    check(ended.map_err(TarError::NotRun)?, messages).await
}

/// Whether nothing is in this directory, or it does not exist.
fn is_empty(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whoever the directory belongs to, if this process may act as them.
fn owner(folder: &Metadata) -> Option<(u32, u32)> {
    geteuid().is_root().then(|| (folder.uid(), folder.gid()))
}

fn tar(arguments: &[&str], folder: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new("tar");
    command.args(arguments).current_dir(folder).env_clear().env("PATH", search_path()).kill_on_drop(true);
    if let Some((user, group)) = owner {
        // As root this drops all other groups as well.
        command.uid(user).gid(group);
    }
    command
}

/// Waits until the archive is complete, and returns its size. One that grows beyond the limit is given up.
async fn await_bounded(
    mut packing: Child,
    file: &File,
    messages: File,
    limit: Bytes,
) -> Result<u64, TarError> {
    let bounded = async {
        let mut due = interval(SIZE_INTERVAL);
        loop {
            let ended = tokio::select! {
                ended = packing.wait() => Some(ended.map_err(TarError::NotRun)?),
                _ = due.tick() => None,
            };
            let of = file.try_clone()?;
            let size = blocking(move || of.metadata()).await?.len();
            if size > limit.0 {
                return Err(TarError::TooLarge(limit));
            }
            if let Some(status) = ended {
                return check(status, messages).await.map(|()| size);
            }
        }
    };
    timeout(TIME_LIMIT, bounded).await.map_err(|_| too_slow())?
}

const fn too_slow() -> TarError {
    TarError::TooSlow(TIME_LIMIT.as_secs())
}

async fn check(status: ExitStatus, mut messages: File) -> Result<(), TarError> {
    if status.success() {
        return Ok(());
    }
    let text = blocking(move || {
        let mut text = Vec::new();
        messages.rewind().and_then(|()| messages.take(LONGEST_MESSAGE).read_to_end(&mut text)).map(|_| text)
    });
    let text = String::from_utf8_lossy(&text.await?).trim().replace('\n', "; ");
    Err(TarError::Failed(status, text))
}

//! Takes checkpoints over from another worker, before the ranks start that go on from them.
//!
//! Nothing that is here is lost by that: what an earlier attempt has saved on this node makes room only for
//! checkpoints that an attempt after it went on to save. If those began anew, because the ones of this node
//! could not be had then, the directory of before stays beside them.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use cohabit_actor::blocking;
use cohabit_host::files::{allow_traversal, remove_directory};
use cohabit_net::{WorkerReports, context_for};
use cohabit_types::{AttemptId, Bytes, CheckpointPiece, CheckpointRequest, CheckpointResult, Span};
use cohabit_worker_core::{FetchedCheckpoints, RankStart};

use super::archives::CARRIED;
use super::entry::CheckpointEntry;
use super::tar;
use crate::code::Abandoned;
use crate::isolation::Isolator;
use crate::state_directory::StateDirectory;

/// How long one piece may take: before the first the other worker makes an archive of all.
const PIECE_LIMIT: Span = Span::from_secs(600);

/// Takes over the checkpoints for one attempt.
pub(crate) struct Carrier {
    pub(crate) head: WorkerReports,
    pub(crate) state: StateDirectory,
    pub(crate) isolation: Isolator,
    pub(crate) abandoned: Abandoned,
}

/// Checkpoints that are here now.
#[derive(Debug, PartialEq, Eq)]
struct Carried {
    size: Bytes,
    /// Where that is which was here before, and which they lack.
    kept: Option<PathBuf>,
}

/// Checkpoints that have arrived, as an archive.
struct Arrived {
    archive: File,
    size: u64,
    lacks_earlier: bool,
}

impl Carrier {
    /// What came of the checkpoints for the attempt of this rank, and what its user is told.
    pub(crate) async fn carry(self, start: RankStart) -> FetchedCheckpoints {
        let Some(source) = start.checkpoints.clone() else { return FetchedCheckpoints::default() };
        let (attempt, from) = (source.attempt, &source.node);
        let (entry, checkpoints) = (entry_of(&start), self.state.checkpoints());
        match self.carried(start).await {
            Ok(None) => FetchedCheckpoints::default(),
            Ok(Some(Carried { size, kept })) => {
                let kept = kept.map_or(String::new(), |path| {
                    format!(
                        "; they lack what an earlier attempt has saved here, which is in {}",
                        path.display()
                    )
                });
                let note = format!(
                    "the checkpoints of attempt {attempt} ({size}) were carried here from {from}{kept}"
                );
                FetchedCheckpoints { result: Some(CheckpointResult::Carried(size)), note: Some(note) }
            }
            Err(why) => {
                let marker = entry.incomplete().path(&checkpoints);
                // Without it the next worker only keeps less of what it has.
                let _ = blocking(move || create_directory(&marker)).await;
                let note = format!(
                    "this attempt starts without the checkpoints of attempt {attempt}, which are on node {from}: {why}"
                );
                FetchedCheckpoints { result: Some(CheckpointResult::Missing(why)), note: Some(note) }
            }
        }
    }

    async fn carried(self, start: RankStart) -> Result<Option<Carried>, String> {
        let Some(arrived) = self.fetch(&start).await? else { return Ok(None) };
        let (attempt, entry, isolation) = (start.rank.attempt, entry_of(&start), self.isolation.clone());
        // May ask a server for the account.
        let account = blocking(move || isolation.account(&start)).await.map_err(|error| error.to_string())?;
        let owner = account.map(|choice| (choice.account.uid, choice.account.gid));
        let checkpoints = self.state.checkpoints();
        let arrivals = Arrivals { directory: arrivals_of(&checkpoints, attempt) };
        let unpacked = arrivals.directory.join("new");
        let made = unpacked.clone();
        let created = blocking(move || prepare(&made, owner)).await;
        created.map_err(|error| disk(&unpacked, &error))?;
        tar::unpack(arrived.archive, &unpacked, owner).await.map_err(|error| error.to_string())?;
        let (lacks_earlier, abandoned) = (arrived.lacks_earlier, self.abandoned);
        let kept = blocking(move || {
            if abandoned.is_set() {
                return Err(NOBODY_WAITS.to_owned());
            }
            let installed = install(&arrivals.directory, entry, &checkpoints, lacks_earlier);
            installed.map_err(|error| disk(&entry.path(&checkpoints), &error))
        });
        Ok(Some(Carried { size: Bytes(arrived.size), kept: kept.await? }))
    }

    /// The archive; none if there is nothing in it.
    async fn fetch(&self, start: &RankStart) -> Result<Option<Arrived>, String> {
        let checkpoints = self.state.checkpoints();
        let folder = checkpoints.clone();
        let file = blocking(move || tempfile::tempfile_in(folder)).await;
        let archive = file.map_err(|error| disk(&checkpoints, &error))?;
        let (mut size, mut lacks_earlier) = (0, false);
        loop {
            if self.abandoned.is_set() {
                return Err(NOBODY_WAITS.to_owned());
            }
            let piece = self.piece(start, size).await?;
            if piece.size == 0 {
                return Ok(None);
            }
            lacks_earlier |= piece.lacks_earlier;
            let mut file = archive.try_clone().map_err(|error| disk(&checkpoints, &error))?;
            let (bytes, total) = (piece.bytes, piece.size);
            size += bytes.len() as u64;
            let written = blocking(move || file.write_all(&bytes)).await;
            written.map_err(|error| disk(&checkpoints, &error))?;
            if size >= total {
                return Ok(Some(Arrived { archive, size, lacks_earlier }));
            }
        }
    }

    async fn piece(&self, start: &RankStart, offset: u64) -> Result<CheckpointPiece, String> {
        let (attempt, node_rank) = (start.rank.attempt, start.node_rank);
        let request = CheckpointRequest { attempt, node_rank, offset };
        let asked = self.head.read_checkpoints(context_for(PIECE_LIMIT), request).await;
        let piece = asked.map_err(|error| format!("the head does not answer: {error}"))?;
        let piece = piece.map_err(|refusal| refusal.message)?;
        // What does not answer the question would be asked for again and again.
        let is_empty = piece.bytes.is_empty() && piece.size > 0;
        match piece.offset == offset && !is_empty {
            true => Ok(piece),
            false => Err("the head answered another question: report this as a bug".to_owned()),
        }
    }
}

const NOBODY_WAITS: &str = "nobody waits for them any more";

fn entry_of(start: &RankStart) -> CheckpointEntry {
    CheckpointEntry::latest(start.rank.attempt.job, start.node_rank)
}

/// What is on its way for an attempt, and is removed with this.
struct Arrivals {
    directory: PathBuf,
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        // It is removed at the next start of the daemon if it cannot be now.
        let _ = remove_directory(&self.directory);
    }
}

fn arrivals_of(checkpoints: &Path, attempt: AttemptId) -> PathBuf {
    checkpoints.join(format!("{CARRIED}{}-{}", attempt.job, attempt.attempt))
}

/// An empty directory of this user and group, with the one that it lies in.
fn prepare(folder: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    create_directory(folder)?;
    let Some((user, group)) = owner else { return Ok(()) };
    folder.parent().map_or(Ok(()), allow_traversal).map_err(|error| io::Error::other(error.to_string()))?;
    chown(folder, Some(user), Some(group))
}

fn create_directory(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Puts what has arrived in the place of what is here. Returns where that is now, if it stays.
fn install(
    arrivals: &Path,
    entry: CheckpointEntry,
    checkpoints: &Path,
    lacks_earlier: bool,
) -> io::Result<Option<PathBuf>> {
    let (here, earlier) = (entry.path(checkpoints), entry.earlier().path(checkpoints));
    let is_used = fs::read_dir(&here).is_ok_and(|mut entries| entries.next().is_some());
    let kept = (is_used && lacks_earlier && !earlier.exists()).then_some(earlier);
    if here.exists() {
        fs::rename(&here, kept.as_deref().unwrap_or(&arrivals.join("old")))?;
    }
    fs::rename(arrivals.join("new"), &here)?;
    let marker = entry.incomplete().path(checkpoints);
    match lacks_earlier {
        true => create_directory(&marker)?,
        false if marker.exists() => fs::remove_dir(&marker)?,
        false => {}
    }
    Ok(kept)
}

fn disk(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use cohabit_types::JobId;

    use super::*;

    /// Directories with one file each.
    fn with_file(folder: &Path, text: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("model"), text).unwrap();
    }

    #[test]
    fn later_checkpoints_take_the_place_of_earlier_ones_unless_they_lack_them() {
        let checkpoints = tempfile::tempdir().unwrap();
        let checkpoints = checkpoints.path();
        let entry = CheckpointEntry::latest(JobId::new(7), 0);
        let here = entry.path(checkpoints);
        let arrivals = checkpoints.join("arrivals");
        let model = |folder: &Path| fs::read_to_string(folder.join("model")).unwrap();
        let arrive = |text: &str, lacks_earlier| {
            with_file(&arrivals.join("new"), text);
            let kept = install(&arrivals, entry, checkpoints, lacks_earlier).unwrap();
            fs::remove_dir_all(&arrivals).unwrap();
            kept
        };
        assert_eq!(arrive("one", false), None);
        assert_eq!((arrive("two", false), model(&here)), (None, "two".to_owned()));
        let kept = arrive("other", true).unwrap();
        assert_eq!((model(&here), model(&kept)), ("other".to_owned(), "two".to_owned()));
        assert!(entry.incomplete().path(checkpoints).exists());
        assert_eq!(arrive("another", true), None, "the first that was kept stays");
        assert_eq!(model(&kept), "two");
        assert_eq!(arrive("whole", false), None);
        assert!(!entry.incomplete().path(checkpoints).exists());
    }
}

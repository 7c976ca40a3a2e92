//! Checkpoints: one safetensors file with the weights, the optimizer's moments, the step and the options.
//!
//! A file is written beside the old one, synced and renamed, so that whatever happens there is a whole one. A
//! checksum over everything finds damage; a damaged file counts as none. A file made with other options is
//! refused, because going on from it would be neither the old training nor the new one.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use candle_core::{Device, Tensor};
use safetensors::{SafeTensors, View as _};

const STEP_KEY: &str = "step";
const OPTIONS_KEY: &str = "options";
const CHECKSUM_KEY: &str = "checksum";

/// Everything that a training needs to go on.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    /// Steps done.
    pub(crate) step: u64,
    /// The options that decide what is computed, by flag.
    pub(crate) options: BTreeMap<String, String>,
    /// Weights and moments, by name.
    pub(crate) tensors: BTreeMap<String, Tensor>,
}

/// What a folder holds for a training that is about to start.
#[derive(Debug)]
pub(crate) enum CheckpointLookup {
    /// No checkpoint.
    Nothing,
    /// A file that is no whole checkpoint, and what is wrong with it.
    Damaged(String),
    /// A checkpoint of a training with the same options.
    Checkpoint(Checkpoint),
}

/// The folder holds a checkpoint of a training with other options.
#[derive(Debug, thiserror::Error)]
#[error(
    "the checkpoint {} is of a training with other options ({}): \
     give the old options, another --checkpoint folder, or remove the file",
    path.display(), differences.join(", ")
)]
pub(crate) struct CheckpointRefused {
    path: PathBuf,
    differences: Vec<String>,
}

/// Where the checkpoints of one program lie.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointStore {
    folder: PathBuf,
    path: PathBuf,
}

impl CheckpointStore {
    /// Makes the folder if need be; the file in it will be called after the program.
    pub(crate) fn open(folder: &Path, program: &str) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the checkpoint folder {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), path: folder.join(format!("{program}.safetensors")) })
    }

    /// Where the checkpoint is, or will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks for a checkpoint of a training with these options; one with others is a [`CheckpointRefused`].
    pub(crate) fn find(&self, options: &BTreeMap<String, String>) -> Result<CheckpointLookup> {
        let bytes = match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CheckpointLookup::Nothing),
            bytes => bytes.with_context(|| format!("cannot read the checkpoint {}", self.path.display()))?,
        };
        let checkpoint = match Checkpoint::from_bytes(&bytes) {
            Ok(checkpoint) => checkpoint,
            Err(error) => return Ok(CheckpointLookup::Damaged(format!("{error:#}"))),
        };
        let differences = differences(&checkpoint.options, options);
        ensure!(differences.is_empty(), CheckpointRefused { path: self.path.clone(), differences });
        Ok(CheckpointLookup::Checkpoint(checkpoint))
    }

    /// Replaces the checkpoint by this one, and returns when it is safe on the disk.
    pub(crate) fn save(&self, checkpoint: &Checkpoint) -> Result<()> {
        let write = || -> Result<()> {
            let unfinished = self.path.with_extension("safetensors.unfinished");
            let mut file = File::create(&unfinished)?;
            file.write_all(&checkpoint.to_bytes()?)?;
            file.sync_all()?;
            fs::rename(&unfinished, &self.path)?;
            Ok(File::open(&self.folder)?.sync_all()?)
        };
        write().with_context(|| format!("cannot save the checkpoint {}", self.path.display()))
    }
}

impl Checkpoint {
    /// The file's content.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let options = serde_json::to_string(&self.options)?;
        let metadata = HashMap::from([
            (CHECKSUM_KEY.to_owned(), checksum(self, &options)),
            (STEP_KEY.to_owned(), self.step.to_string()),
            (OPTIONS_KEY.to_owned(), options),
        ]);
        Ok(safetensors::serialize(&self.tensors, Some(metadata))?)
    }

    /// What a whole file's content says; an error of any kind is damage.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let entry = |key: &str| header.metadata().as_ref()?.get(key);
        let options = entry(OPTIONS_KEY).context("no options")?;
        let checkpoint = Self {
            step: entry(STEP_KEY).context("no step")?.parse().context("the step is no number")?,
            options: serde_json::from_str(options).context("the options cannot be read")?,
            tensors: candle_core::safetensors::load_buffer(bytes, &Device::Cpu)?.into_iter().collect(),
        };
        ensure!(entry(CHECKSUM_KEY) == Some(&checksum(&checkpoint, options)), "the checksum is wrong");
        Ok(checkpoint)
    }
}

/// FNV-1a (Fowler, Noll and Vo) over step, options, names and values: enough against damage, none against
/// malice.
fn checksum(checkpoint: &Checkpoint, options: &str) -> String {
    let start = fnv(fnv(0xcbf2_9ce4_8422_2325, &checkpoint.step.to_le_bytes()), options.as_bytes());
    let sum = checkpoint
        .tensors
        .iter()
        .fold(start, |sum, (name, tensor)| fnv(fnv(sum, name.as_bytes()), &tensor.data()));
    format!("{sum:016x}")
}

fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Says for each option in which `saved` and `present` disagree what it was and what it is.
fn differences(saved: &BTreeMap<String, String>, present: &BTreeMap<String, String>) -> Vec<String> {
    let value =
        |options: &BTreeMap<String, String>, flag| options.get(flag).map_or("unset", |v| v).to_owned();
    let mut flags: Vec<&String> = saved.keys().chain(present.keys()).collect();
    flags.sort();
    flags.dedup();
    flags
        .into_iter()
        .filter(|flag| saved.get(*flag) != present.get(*flag))
        .map(|flag| format!("{flag} was {}, is now {}", value(saved, flag), value(present, flag)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(hidden: &str) -> BTreeMap<String, String> {
        [("--hidden", hidden), ("--seed", "1")]
            .map(|(flag, value)| (flag.to_owned(), value.to_owned()))
            .into()
    }

    fn checkpoint() -> Checkpoint {
        let weights = Tensor::new(&[1.5f32, -2.0, 0.25], &Device::Cpu).unwrap();
        Checkpoint {
            step: 7,
            options: options("8"),
            tensors: BTreeMap::from([("weights".to_owned(), weights)]),
        }
    }

    fn saved() -> (tempfile::TempDir, CheckpointStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = CheckpointStore::open(&folder.path().join("new"), "digits").unwrap();
        store.save(&checkpoint()).unwrap();
        (folder, store)
    }

    #[test]
    fn what_was_saved_is_found_and_nothing_else_lies_about() {
        let (_folder, store) = saved();
        let CheckpointLookup::Checkpoint(found) = store.find(&options("8")).unwrap() else {
            panic!("not found")
        };
        assert_eq!((found.step, found.options), (7, options("8")));
        assert_eq!(found.tensors["weights"].to_vec1::<f32>().unwrap(), [1.5, -2.0, 0.25]);
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 1);
    }

    #[test]
    fn every_single_damaged_byte_and_every_cut_is_noticed() {
        let (_folder, store) = saved();
        let whole = fs::read(store.path()).unwrap();
        for position in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[position] ^= 1;
            assert!(is_unusable(&damaged), "byte {position} flipped");
            assert!(is_unusable(&whole[..position]), "cut at {position}");
        }
    }

    /// A flipped bit in the header's padding or key order may be harmless; then the content must be the same.
    fn is_unusable(bytes: &[u8]) -> bool {
        let Ok(found) = Checkpoint::from_bytes(bytes) else { return true };
        let values: Vec<f32> = found.tensors["weights"].to_vec1().unwrap();
        found.step == 7 && found.options == options("8") && values == [1.5, -2.0, 0.25]
    }

    #[test]
    fn a_damaged_file_counts_as_none() {
        let (_folder, store) = saved();
        fs::write(store.path(), "not a checkpoint").unwrap();
        assert!(matches!(store.find(&options("8")).unwrap(), CheckpointLookup::Damaged(_)));
    }

    #[test]
    fn other_options_are_refused_by_name() {
        let (_folder, store) = saved();
        let error = store.find(&options("16")).unwrap_err();
        assert!(error.is::<CheckpointRefused>());
        assert!(error.to_string().contains("(--hidden was 8, is now 16)"), "{error}");
    }
}

//! Checkpoints: one safetensors file with the weights, the moments of the optimizer, the step and the
//! options.
//!
//! The file is written beside the old one, synced and renamed, so that a complete file always exists. A
//! checksum over the whole content detects damage; a damaged file is ignored. A file made with other options
//! is an error, because resuming from it would continue neither the old training nor the new one.

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

/// Everything that is needed to resume a training.
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    /// Number of steps done.
    pub(crate) step: u64,
    /// The options that determine the result, by flag.
    pub(crate) options: BTreeMap<String, String>,
    /// Weights and moments, by name.
    pub(crate) tensors: BTreeMap<String, Tensor>,
}

/// The result of looking for a checkpoint.
#[derive(Debug)]
pub(crate) enum CheckpointLookup {
    /// No checkpoint.
    Nothing,
    /// A damaged file, and what is wrong with it.
    Damaged(String),
    /// A checkpoint of a training with the same options.
    Checkpoint(Checkpoint),
}

/// The directory has a checkpoint of a training with other options.
#[derive(Debug, thiserror::Error)]
#[error(
    "the checkpoint {} is of a training with other options ({}): \
     give the old options or another --checkpoint directory, or remove the file",
    path.display(), differences.join(", ")
)]
pub(crate) struct CheckpointRefused {
    path: PathBuf,
    differences: Vec<String>,
}

/// The checkpoint file of one program.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointStore {
    folder: PathBuf,
    path: PathBuf,
}

impl CheckpointStore {
    /// Creates the directory if necessary. The file is named after the program.
    pub(crate) fn open(folder: &Path, program: &str) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the checkpoint directory {}", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), path: folder.join(format!("{program}.safetensors")) })
    }

    /// The path of the checkpoint.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks for a checkpoint with these options. One with other options is a [`CheckpointRefused`] error.
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

    /// Replaces the checkpoint and returns when it is durable.
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
    /// Serialises the checkpoint.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let options = serde_json::to_string(&self.options)?;
        let metadata = HashMap::from([
            (CHECKSUM_KEY.to_owned(), checksum(self, &options)),
            (STEP_KEY.to_owned(), self.step.to_string()),
            (OPTIONS_KEY.to_owned(), options),
        ]);
        Ok(safetensors::serialize(&self.tensors, Some(metadata))?)
    }

    /// Parses a file; every error means that the file is damaged.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let entry = |key: &str| header.metadata().as_ref()?.get(key);
        let options = entry(OPTIONS_KEY).context("no options")?;
        let checkpoint = Self {
            step: entry(STEP_KEY).context("no step")?.parse().context("the step is not a number")?,
            options: serde_json::from_str(options).context("the options are invalid")?,
            tensors: candle_core::safetensors::load_buffer(bytes, &Device::Cpu)?.into_iter().collect(),
        };
        ensure!(entry(CHECKSUM_KEY) == Some(&checksum(&checkpoint, options)), "the checksum is wrong");
        Ok(checkpoint)
    }
}

/// FNV-1a (Fowler, Noll and Vo) over step, options, names and values. It detects damage, not manipulation.
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

/// Describes each option that differs between `saved` and `present`.
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
    fn a_saved_checkpoint_is_found_and_no_other_file_remains() {
        let (_folder, store) = saved();
        let CheckpointLookup::Checkpoint(found) = store.find(&options("8")).unwrap() else {
            panic!("not found")
        };
        assert_eq!((found.step, found.options), (7, options("8")));
        assert_eq!(found.tensors["weights"].to_vec1::<f32>().unwrap(), [1.5, -2.0, 0.25]);
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 1);
    }

    #[test]
    fn every_damaged_byte_and_every_truncation_is_detected() {
        let (_folder, store) = saved();
        let whole = fs::read(store.path()).unwrap();
        for position in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[position] ^= 1;
            assert!(is_unusable(&damaged), "byte {position} flipped");
            assert!(is_unusable(&whole[..position]), "cut at {position}");
        }
    }

    /// A flipped bit in the padding or the key order of the header may be harmless; then the content is the
    /// same.
    fn is_unusable(bytes: &[u8]) -> bool {
        let Ok(found) = Checkpoint::from_bytes(bytes) else { return true };
        let values: Vec<f32> = found.tensors["weights"].to_vec1().unwrap();
        found.step == 7 && found.options == options("8") && values == [1.5, -2.0, 0.25]
    }

    #[test]
    fn a_damaged_file_is_ignored() {
        let (_folder, store) = saved();
        fs::write(store.path(), "not a checkpoint").unwrap();
        assert!(matches!(store.find(&options("8")).unwrap(), CheckpointLookup::Damaged(_)));
    }

    #[test]
    fn the_error_of_other_options_names_them() {
        let (_folder, store) = saved();
        let error = store.find(&options("16")).unwrap_err();
        assert!(error.is::<CheckpointRefused>());
        assert!(error.to_string().contains("(--hidden was 8, is now 16)"), "{error}");
    }
}

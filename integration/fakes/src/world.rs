//! The directory of a fake world: creating, finding, reading and changing it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{FakeGpu, Library};

/// The variable with the directory of the world.
pub const WORLD_VARIABLE: &str = "COHABIT_FAKE_WORLD";

/// The directory of a fake world.
#[derive(Debug, Clone)]
pub struct FakeWorld {
    root: PathBuf,
}

/// `gpus.json`.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Hardware {
    library: Library,
    gpus: Vec<FakeGpu>,
}

impl FakeWorld {
    /// Creates a world with these GPUs in this directory.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn create(root: &Path, gpus: Vec<FakeGpu>) -> io::Result<FakeWorld> {
        for folder in ["processes", "xids", "nvidia-mps"] {
            fs::create_dir_all(root.join(folder))?;
        }
        let world = FakeWorld { root: root.canonicalize()? };
        world.open_to_all()?;
        write_json(&world.hardware_file(), &Hardware { library: Library::default(), gpus })?;
        Ok(world)
    }

    /// The world in this directory, if there is one.
    #[must_use]
    pub fn open(root: &Path) -> Option<FakeWorld> {
        let world = FakeWorld { root: root.canonicalize().ok()? };
        world.hardware_file().exists().then_some(world)
    }

    /// The world that the environment names, else the one whose `bin` contains this program or library.
    #[must_use]
    pub fn find(program: &Path) -> Option<FakeWorld> {
        match std::env::var_os(WORLD_VARIABLE) {
            Some(root) => FakeWorld::open(Path::new(&root)),
            None => FakeWorld::open(program.parent()?.parent()?),
        }
    }

    /// The world of the running program, by its path on the command line.
    #[must_use]
    pub fn of_this_program() -> Option<FakeWorld> {
        let called = PathBuf::from(std::env::args_os().next()?);
        if called.components().count() > 1 {
            return FakeWorld::find(&called);
        }
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&search_path).map(|it| it.join(&called)).find(|it| it.exists());
        FakeWorld::find(&found.unwrap_or(called))
    }

    /// Its directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The default pipe directory of MPS clients, in place of `/tmp/nvidia-mps`.
    #[must_use]
    pub fn default_pipe(&self) -> PathBuf {
        self.root.join("nvidia-mps")
    }

    /// The present state of the driver.
    #[must_use]
    pub fn library(&self) -> Library {
        self.hardware().library
    }

    /// The present state of the GPUs, in the order of the library.
    #[must_use]
    pub fn gpus(&self) -> Vec<FakeGpu> {
        self.hardware().gpus
    }

    /// The present state of the GPU with this UUID.
    #[must_use]
    pub fn gpu(&self, uuid: &str) -> Option<FakeGpu> {
        self.gpus().into_iter().find(|gpu| gpu.uuid == uuid)
    }

    /// The GPUs that a program with this `CUDA_VISIBLE_DEVICES` sees.
    #[must_use]
    pub fn visible(&self, devices: Option<&str>) -> Vec<FakeGpu> {
        visible(self.gpus(), devices)
    }

    /// Changes the driver, for all later calls.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn edit_library(&self, edit: impl FnOnce(&mut Library)) -> io::Result<()> {
        self.edit(|hardware| edit(&mut hardware.library))
    }

    /// Changes a GPU, for all later calls.
    ///
    /// # Errors
    /// When no GPU has this UUID, or the directory cannot be written.
    pub fn edit_gpu(&self, uuid: &str, edit: impl FnOnce(&mut FakeGpu)) -> io::Result<()> {
        let mut found = false;
        self.edit(|hardware| {
            if let Some(gpu) = hardware.gpus.iter_mut().find(|gpu| gpu.uuid == uuid) {
                edit(gpu);
                found = true;
            }
        })?;
        if found { Ok(()) } else { Err(io::Error::other(format!("this world has no GPU {uuid}"))) }
    }

    fn edit(&self, edit: impl FnOnce(&mut Hardware)) -> io::Result<()> {
        let _locked = self.lock()?;
        let mut hardware = self.hardware();
        edit(&mut hardware);
        write_json(&self.hardware_file(), &hardware)
    }

    /// Lets processes of all users in, as a driver does.
    fn open_to_all(&self) -> io::Result<()> {
        File::create(self.lock_file())?.set_permissions(Permissions::from_mode(0o666))?;
        for folder in ["", "processes", "xids", "nvidia-mps"] {
            fs::set_permissions(self.root.join(folder), Permissions::from_mode(0o777))?;
        }
        Ok(())
    }

    /// Locks the world against other changes until the file is dropped.
    pub(crate) fn lock(&self) -> io::Result<File> {
        let file = File::create(self.lock_file())?;
        file.lock()?;
        Ok(file)
    }

    fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    fn hardware_file(&self) -> PathBuf {
        self.root.join("gpus.json")
    }

    /// A missing or invalid file is a world without GPUs.
    fn hardware(&self) -> Hardware {
        read_json(&self.hardware_file()).unwrap_or_default()
    }
}

/// The GPUs that are visible with this `CUDA_VISIBLE_DEVICES`: UUIDs, beginnings of UUIDs, or numbers. The
/// first one that does not exist hides all that follow.
#[must_use]
pub fn visible(gpus: Vec<FakeGpu>, devices: Option<&str>) -> Vec<FakeGpu> {
    let Some(devices) = devices else { return gpus };
    let named = |name: &str| match name.parse::<usize>() {
        Ok(number) => gpus.get(number),
        Err(_) => gpus.iter().find(|gpu| !name.is_empty() && gpu.uuid.starts_with(name)),
    };
    devices.split(',').map_while(|name| named(name.trim())).cloned().collect()
}

/// The content of this file, if it exists and is valid.
pub(crate) fn read_json<T: DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

/// Replaces the file atomically.
pub(crate) fn write_json(file: &Path, content: &impl Serialize) -> io::Result<()> {
    let new = file.with_extension(format!("new-{}", std::process::id()));
    fs::write(&new, serde_json::to_vec_pretty(content)?)?;
    fs::rename(&new, file)
}

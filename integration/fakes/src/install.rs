//! Puts the fakes where those who look for NVIDIA's own find them.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::FakeWorld;

/// Where the fakes lie that belong to one world.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The folder with NVIDIA's programs, for a search path.
    pub bin: PathBuf,
    /// The management library.
    pub nvml: PathBuf,
    /// The program that stands in for a training.
    pub client: PathBuf,
}

impl Installed {
    /// A search path that finds the fakes first, in the form of `PATH`.
    #[must_use]
    pub fn search_path(&self) -> String {
        let rest = std::env::var("PATH").unwrap_or_default();
        format!("{}:{rest}", self.bin.display())
    }
}

impl FakeWorld {
    /// Puts the fakes, built into this folder, into the world's own `bin`. They know their world by that.
    ///
    /// The library is copied: the same file under another name would be the library of whichever world came
    /// first in this process. The programs are links.
    ///
    /// # Errors
    /// When they are not built, or the folder cannot be written.
    pub fn install(&self, examples: &Path) -> io::Result<Installed> {
        let bin = self.root().join("bin");
        fs::create_dir_all(&bin)?;
        let built = |name: &str| {
            let path = examples.join(name);
            let missing =
                || format!("{} is missing: cargo build -p cohabit-fakes --examples", path.display());
            if path.exists() { Ok(path) } else { Err(io::Error::other(missing())) }
        };
        let library = "libfake_nvml.so";
        fs::copy(built(library)?, bin.join(library))?;
        let programs = [
            ("nvidia-cuda-mps-control", "fake-mps"),
            ("nvidia-cuda-mps-server", "fake-mps"),
            ("fake-cuda-client", "fake-cuda-client"),
        ];
        for (name, example) in programs {
            match symlink(built(example)?, bin.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(Installed { nvml: bin.join(library), client: bin.join("fake-cuda-client"), bin })
    }
}

/// The folder in which cargo leaves the examples of the build that this test or program is of.
///
/// # Errors
/// When the program does not know where it lies.
pub fn examples() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.ancestors().skip(1).find(|it| !it.ends_with("deps") && !it.ends_with("examples"));
    Ok(folder.unwrap_or(Path::new(".")).join("examples"))
}

//! Installs the fakes where programs look for NVIDIA's own.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::FakeWorld;

/// The installed fakes of one world.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The directory of NVIDIA's programs, for a search path.
    pub bin: PathBuf,
    /// The management library.
    pub nvml: PathBuf,
    /// The fake training program.
    pub client: PathBuf,
}

impl Installed {
    /// A search path with the fakes first, in the form of `PATH`.
    #[must_use]
    pub fn search_path(&self) -> String {
        let rest = std::env::var("PATH").unwrap_or_default();
        format!("{}:{rest}", self.bin.display())
    }
}

impl FakeWorld {
    /// Installs the fakes from this build directory into the world's `bin`, by which they find their world.
    ///
    /// The library is copied: a link to the same file would be loaded only once in this process, for the
    /// first world. The programs are links.
    ///
    /// # Errors
    /// When they are not built, or the directory cannot be written.
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

/// The directory of the examples that cargo built together with this test or program.
///
/// # Errors
/// When the path of this program cannot be determined.
pub fn examples() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.ancestors().skip(1).find(|it| !it.ends_with("deps") && !it.ends_with("examples"));
    Ok(folder.unwrap_or(Path::new(".")).join("examples"))
}

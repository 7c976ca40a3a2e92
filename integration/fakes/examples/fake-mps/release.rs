//! The releases of NVIDIA's control program that the fake behaves as. `real-control` in `integration/mps`
//! compares them with the real programs.

use cohabit_fakes::FakeWorld;

/// A release, by what its control program can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// Drivers up to 550: it knows `-d` and `-f` only alone, lists no options, starts without CUDA and without
    /// a device, and serves one user at a time.
    Cuda12,
    /// Drivers from 580 on.
    Cuda13,
}

impl Release {
    /// That of the driver of this world.
    pub(crate) fn of(world: &FakeWorld) -> Release {
        let driver = world.library().driver;
        let major = driver.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_some_and(|major| major < 570) { Release::Cuda12 } else { Release::Cuda13 }
    }

    /// What it prints for `-h`.
    pub(crate) const fn help(self) -> &'static str {
        match self {
            Release::Cuda12 => "A fake of NVIDIA's MPS control program of CUDA 12. See its manual page.\n",
            Release::Cuda13 => {
                "A fake of NVIDIA's MPS control program of CUDA 13.\n\nOPTIONS:\n  -h,--help\n  -d,--daemon\n  \
                 -f,--forground\n  -M,--multiuser-server\n"
            }
        }
    }
}

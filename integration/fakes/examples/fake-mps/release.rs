//! The releases of NVIDIA's control program that the fake behaves as. `tests/fakes/real_programs.rs`
//! compares them with the real ones.

use cohabit_fakes::FakeWorld;

/// A release, by the first driver that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Release {
    /// It knows `-d` and `-f` only alone, lists no options, starts without CUDA and without a device, serves
    /// one user at a time, writes no pid file, and does not know the status of a server.
    R535,
    /// The same, with a pid file and that status.
    R550,
    /// It knows and lists options, and serves several users.
    R580,
}

impl Release {
    /// That of the driver of this world.
    pub(crate) fn of(world: &FakeWorld) -> Release {
        let driver = world.library().driver;
        match driver.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
            Some(..550) => Release::R535,
            Some(550..570) => Release::R550,
            Some(_) | None => Release::R580,
        }
    }

    /// What it prints for `-h`.
    pub(crate) const fn help(self) -> &'static str {
        match self {
            Release::R535 | Release::R550 => {
                "A fake of NVIDIA's MPS control program of CUDA 12. See its manual page.\n"
            }
            Release::R580 => {
                "A fake of NVIDIA's MPS control program of CUDA 13.\n\nOPTIONS:\n  -h,--help\n  -d,--daemon\n  \
                 -f,--forground\n  -M,--multiuser-server\n"
            }
        }
    }
}

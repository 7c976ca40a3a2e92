//! A fake of NVIDIA's MPS programs that needs no GPU: `nvidia-cuda-mps-control` or `nvidia-cuda-mps-server`,
//! depending on the name under which it is called. It behaves as those of drivers 535 to 580 were observed
//! to.
//!
//! ```text
//! launch    the daemon's start: checks, `-d` and `-f`
//! daemon    the control daemon: one session at a time
//! commands  its answers
//! server    the server: its clients, faults and limits
//! servers   how the daemon controls its server
//! session   the control program: commands on its standard input
//! log       the log files
//! release   what the program of each driver can do
//! ```

mod commands;
mod daemon;
mod launch;
mod log;
mod release;
mod server;
mod servers;
mod session;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cohabit_fakes::FakeWorld;

use crate::release::Release;

fn main() -> ExitCode {
    let called = std::env::args().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default();
    if name == "nvidia-cuda-mps-server" {
        return server::run();
    }
    let Some(world) = FakeWorld::of_this_program() else { return launch::no_world() };
    let release = Release::of(&world);
    let flags: Vec<String> = std::env::args().skip(1).filter(|it| it.starts_with('-')).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let has = |flag: &str| flags.contains(&flag) && (flags.len() == 1 || release == Release::R580);
    match (flags.as_slice(), release) {
        (["-h"], _) => session::help(release),
        (["-v"], Release::R580) => session::version(),
        _ if has("-d") => launch::in_background(&world, &flags),
        _ if has("-f") => launch::in_foreground(&world, &flags),
        _ => session::run(),
    }
}

/// `CUDA_MPS_PIPE_DIRECTORY`.
fn pipe_directory() -> PathBuf {
    std::env::var_os("CUDA_MPS_PIPE_DIRECTORY").map_or_else(|| "/tmp/nvidia-mps".into(), PathBuf::from)
}

//! A fake of NVIDIA's MPS programs that needs no GPU: `nvidia-cuda-mps-control` or `nvidia-cuda-mps-server`,
//! depending on the name under which it is called. It fails in the ways that were observed with drivers 550
//! to 580.
//!
//! ```text
//! launch    the daemon's start: checks, `-d` and `-f`
//! daemon    the control daemon: one session at a time
//! commands  its answers
//! server    the server: its clients, faults and limits
//! servers   how the daemon controls its server
//! session   the control program: commands on its standard input
//! log       the log files
//! ```

mod commands;
mod daemon;
mod launch;
mod log;
mod server;
mod servers;
mod session;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let called = std::env::args().next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default();
    if name == "nvidia-cuda-mps-server" {
        return server::run();
    }
    let flags: Vec<String> = std::env::args().skip(1).filter(|it| it.starts_with('-')).collect();
    match flags.first().map(String::as_str) {
        Some("-d") => launch::in_background(&flags),
        Some("-f") => launch::in_foreground(&flags),
        Some("-v") => session::version(),
        _ => session::run(),
    }
}

/// `CUDA_MPS_PIPE_DIRECTORY`.
fn pipe_directory() -> PathBuf {
    std::env::var_os("CUDA_MPS_PIPE_DIRECTORY").map_or_else(|| "/tmp/nvidia-mps".into(), PathBuf::from)
}

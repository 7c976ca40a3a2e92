//! Tests MPS on a GPU: starts its daemon and server in a private directory and stops them again.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use cohabit_client::types::{Device, DeviceSharing, Span, counted};
use cohabit_gpu::NvmlSession;
use cohabit_gpu::mps::{MpsDaemon, MpsDirectory, MpsError, MpsPrograms};
use nix::unistd::geteuid;

use super::device_name::device_name;
use super::findings::Finding;

const CHECK: &str = "mps probe";
/// Time limit for a daemon without clients to stop.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn probe(gpus: &NvmlSession, device: &Device) -> Finding {
    let gpu = device_name(device);
    if let Some(why) = reason_to_skip(gpus, device) {
        return Finding::warning(CHECK, format!("not tested on {gpu}"), why);
    }
    match attempt(device) {
        Ok(span) => {
            let observed = format!("on {gpu}, an MPS server was ready after {span} and is stopped again");
            Finding::ok(CHECK, observed)
        }
        Err(error) => Finding::error(CHECK, format!("MPS does not work on {gpu}"), error.to_string()),
    }
}

/// The finding on a machine without GPUs.
pub(super) fn without_gpus() -> Finding {
    Finding::warning(CHECK, "not tested", "there is no GPU to test it on")
}

/// The reason not to test this GPU, if there is one.
fn reason_to_skip(gpus: &NvmlSession, device: &Device) -> Option<String> {
    if let DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why) = &device.condition.sharing {
        return Some(why.clone());
    }
    match gpus.scan(&device.id) {
        Ok(look) if look.processes.is_empty() => None,
        Ok(look) => {
            let processes = counted(look.processes.len(), "process", "processes");
            Some(format!("it runs {processes}: try again when it is idle"))
        }
        Err(error) => Some(error.to_string()),
    }
}

/// The time until the server was ready. If it never is, its logs remain where the error says.
fn attempt(device: &Device) -> Result<Span, MpsError> {
    let tools = MpsPrograms::find(&env::var("PATH").unwrap_or_default())?;
    let folder = private_folder()
        .map_err(|error| MpsError(format!("cannot create a temporary directory ({error})")))?;
    let home = MpsDirectory::create(&folder, &device.id)?;
    let started = Instant::now();
    let daemon = MpsDaemon::start(&tools, &home, &device.id, geteuid().as_raw())?;
    let took = started.elapsed();
    daemon.quit(TIMEOUT)?;
    for left in [MpsDirectory::locate(&folder, &device.id)?, folder] {
        // Files that remain in the temporary directory do no harm.
        _ = fs::remove_dir_all(left);
    }
    Ok(took.into())
}

/// No worker keeps its state there, so the test cannot meet the daemon of one.
fn private_folder() -> io::Result<PathBuf> {
    let path = env::temp_dir().join(format!("cohabit-probe-{}", process::id()));
    DirBuilder::new().mode(0o700).recursive(true).create(&path)?;
    Ok(path)
}

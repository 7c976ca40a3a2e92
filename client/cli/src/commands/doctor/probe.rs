//! Tries MPS on a GPU: starts its daemon and server in a folder of their own, and stops them again.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use cohabit_client::proto::{Device, DeviceSharing, Span};
use cohabit_gpu::NvmlSession;
use cohabit_gpu::mps::{MpsDaemon, MpsDirectory, MpsError, MpsPrograms};

use super::findings::Finding;
use super::gpus::name;

const CHECK: &str = "mps probe";
/// How long a daemon without clients may take to end.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn probe(gpus: &NvmlSession, device: &Device) -> Finding {
    let gpu = name(device);
    if let Some(why) = hindrance(gpus, device) {
        return Finding::doubtful(CHECK, format!("not tried on {gpu}"), why);
    }
    match attempt(device) {
        Ok(span) => {
            let seen = format!("on {gpu}, an MPS server was ready after {span}; it is stopped again");
            Finding::good(CHECK, seen)
        }
        Err(error) => Finding::broken(CHECK, format!("MPS does not work on {gpu}"), error.to_string()),
    }
}

/// What was asked for and cannot be done.
pub(super) fn without_gpus() -> Finding {
    Finding::doubtful(CHECK, "not tried", "there is no GPU to try it on")
}

/// Why this GPU is better left alone.
fn hindrance(gpus: &NvmlSession, device: &Device) -> Option<String> {
    if let DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why) = &device.condition.sharing {
        return Some(why.clone());
    }
    match gpus.scan(&device.id) {
        Ok(look) if look.processes.is_empty() => None,
        Ok(look) => Some(format!("it has {} processes: try again when it is idle", look.processes.len())),
        Err(error) => Some(error.to_string()),
    }
}

/// How long it took until the server was ready. If it never is, its logs are left where the error says.
fn attempt(device: &Device) -> Result<Span, MpsError> {
    let tools = MpsPrograms::find(&env::var("PATH").unwrap_or_default())?;
    let folder = private_folder().map_err(|error| MpsError(format!("no folder to try it in ({error})")))?;
    let home = MpsDirectory::create(&folder, &device.id)?;
    let started = Instant::now();
    let daemon = MpsDaemon::start(&tools, &home, &device.id)?;
    let took = started.elapsed();
    daemon.quit(TIMEOUT)?;
    for left in [MpsDirectory::locate(&folder, &device.id)?, folder] {
        // What stays in a temporary folder harms nobody.
        _ = fs::remove_dir_all(left);
    }
    Ok(took.into())
}

/// No worker has its state there, so no daemon of one is met.
fn private_folder() -> io::Result<PathBuf> {
    let path = env::temp_dir().join(format!("cohabit-probe-{}", process::id()));
    DirBuilder::new().mode(0o700).recursive(true).create(&path)?;
    Ok(path)
}

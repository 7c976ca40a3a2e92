//! The environment of an MPS client, and its removal from the server.
//!
//! A client that is killed while its kernels run may take the server, and so all other clients, with it.
//! `terminate_client` makes the server finish the client's work first; the process can then be killed safely.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cohabit_types::{Bytes, DeviceId};

use super::control::{Control, ControlError};
use super::deadline::Deadline;
use super::status::{MpsClient, clients};
use super::{MpsDirectory, MpsError, MpsPrograms};

/// The environment of a client with these limits: pipe and log directory, the GPU by its UUID, the memory
/// limit of the process, and, where its compute is capped, its percentage of the multiprocessors.
#[must_use]
pub fn client_environment(
    directory: &MpsDirectory,
    gpu: &DeviceId,
    memory: Bytes,
    percentage: Option<u32>,
) -> BTreeMap<String, String> {
    // The daemon sees one GPU, which therefore has number 0. MPS has only the units G and M; they are binary.
    let limit = format!("0={}M", (memory.0 >> 20).max(1));
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let percentage = percentage.map(|cap| ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", cap.to_string()));
    let always = [
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
        ("CUDA_VISIBLE_DEVICES", gpu.to_string()),
        ("CUDA_MPS_PIPE_DIRECTORY", text(directory.pipe())),
        ("CUDA_MPS_LOG_DIRECTORY", text(directory.log())),
        ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limit),
    ];
    always.into_iter().chain(percentage).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The environment that keeps a process away from every MPS daemon.
#[must_use]
pub fn environment_without_mps(directory: &MpsDirectory) -> BTreeMap<String, String> {
    let empty_pipe = directory.empty_pipe().to_string_lossy().into_owned();
    BTreeMap::from([("CUDA_MPS_PIPE_DIRECTORY".to_owned(), empty_pipe)])
}

/// All that a process needs to remove clients from a GPU's MPS server. It can be passed to another process
/// and does not depend on that process's own environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRemoval {
    /// NVIDIA's control program.
    pub program: PathBuf,
    /// The directory of the GPU's daemon.
    pub directory: MpsDirectory,
    /// The complete environment of the control program.
    pub environment: BTreeMap<String, String>,
}

impl ClientRemoval {
    /// Removal from the server of the daemon in this directory.
    #[must_use]
    pub fn new(programs: &MpsPrograms, directory: &MpsDirectory) -> ClientRemoval {
        let Control { program, directory, environment } = Control::new(programs, directory);
        ClientRemoval { program, directory, environment }
    }

    fn control(&self) -> Control {
        let ClientRemoval { program, directory, environment } = self.clone();
        Control { program, directory, environment }
    }
}

/// Removes those of these processes that are clients of the server, within `timeout`, and returns them. Where
/// there is no daemon any more, there is nothing to remove.
///
/// # Errors
/// When the server did not confirm the removal of each client.
pub fn terminate_clients(
    removal: &ClientRemoval,
    processes: &[i32],
    timeout: Duration,
) -> Result<Vec<i32>, MpsError> {
    let (control, deadline) = (&removal.control(), Deadline::after(timeout));
    let known = match clients(control, deadline) {
        Err(ControlError::NoDaemon) => return Ok(Vec::new()),
        known => known.map_err(|error| MpsError(error.to_string()))?,
    };
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    for client in known.into_iter().filter(|client| processes.contains(&client.process)) {
        // Half of the time that is left for each: a client that hangs must not use up the time of the others.
        match terminate(control, client, deadline.within(deadline.left() / 2)) {
            Ok(()) => removed.push(client.process),
            // The client may have ended by itself meanwhile.
            Err(_) if clients(control, deadline).is_ok_and(|left| !left.contains(&client)) => {}
            Err(why) => failures.push(format!("process {}: {why}", client.process)),
        }
    }
    if failures.is_empty() {
        return Ok(removed);
    }
    Err(MpsError(format!(
        "the MPS server did not confirm the removal of all clients: {}",
        failures.join("; ")
    )))
}

fn terminate(control: &Control, client: MpsClient, deadline: Deadline) -> Result<(), String> {
    let MpsClient { server, process } = client;
    let answer = control.ask(&format!("terminate_client {server} {process}"), deadline);
    match answer.map_err(|error| error.to_string())?.last().map(String::as_str) {
        Some("0") => Ok(()),
        Some(code) => Err(format!("the server answered {code}")),
        None => Err("the server answered nothing".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_daemon_gpu_and_limits() {
        let (directory, gpu) = (MpsDirectory::existing("/h"), DeviceId("GPU-a".into()));
        let environment = client_environment(&directory, &gpu, Bytes((5 << 30) + (1 << 19)), Some(50));
        let expected = [
            ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
            ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50"),
            ("CUDA_MPS_LOG_DIRECTORY", "/h/l"),
            ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=5120M"),
            ("CUDA_MPS_PIPE_DIRECTORY", "/h/p"),
            ("CUDA_VISIBLE_DEVICES", "GPU-a"),
        ];
        assert_eq!(environment, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let uncapped = client_environment(&directory, &gpu, Bytes(1), None);
        assert!(!uncapped.contains_key("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
        assert_eq!(uncapped["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=1M", "a limit of 0 would be no limit");
    }

    #[test]
    fn a_process_without_mps_gets_an_empty_pipe_directory() {
        let environment = environment_without_mps(&MpsDirectory::existing("/h"));
        assert_eq!(environment, BTreeMap::from([("CUDA_MPS_PIPE_DIRECTORY".into(), "/h/n".into())]));
    }
}

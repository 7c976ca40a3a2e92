//! What a client of MPS finds in its environment, and how it is removed from its server.
//!
//! A client that is killed while its kernels run may take the server and all other clients with it. So it is
//! removed before: the server ends its work, and it may be killed without harm.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cohabit_types::{Bytes, DeviceId};

use super::control::{Control, ControlError};
use super::daemon::{MpsClient, clients};
use super::patience::Deadline;
use super::{ClientRemoval, MpsDirectory, MpsError, MpsPrograms};

/// What a process must find in its environment to be a client within these limits: pipe and log directory,
/// the GPU by its UUID, the memory of the process, and where it is capped, its percentage of the
/// multiprocessors.
#[must_use]
pub fn client_environment(
    home: &MpsDirectory,
    gpu: &DeviceId,
    memory: Bytes,
    percentage: Option<u32>,
) -> BTreeMap<String, String> {
    // The daemon sees one GPU, so it is number 0. MPS knows the units G and M, and they are binary.
    let limit = format!("0={}M", (memory.0 >> 20).max(1));
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let percentage = percentage.map(|cap| ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", cap.to_string()));
    let always = [
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
        ("CUDA_VISIBLE_DEVICES", gpu.to_string()),
        ("CUDA_MPS_PIPE_DIRECTORY", text(home.pipe())),
        ("CUDA_MPS_LOG_DIRECTORY", text(home.log())),
        ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limit),
    ];
    always.into_iter().chain(percentage).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What keeps a process from meeting any MPS daemon.
#[must_use]
pub fn environment_without_mps(home: &MpsDirectory) -> BTreeMap<String, String> {
    let empty_pipe = home.empty_pipe().to_string_lossy().into_owned();
    BTreeMap::from([("CUDA_MPS_PIPE_DIRECTORY".to_owned(), empty_pipe)])
}

impl ClientRemoval {
    /// From the server of the daemon in this home.
    #[must_use]
    pub fn new(tools: &MpsPrograms, home: &MpsDirectory) -> ClientRemoval {
        ClientRemoval(Control::new(tools, home))
    }
}

/// Removes those of these processes that are clients of the server, and says which were; gives up after this
/// time. Where there is no daemon any more, there is nothing to remove.
///
/// # Errors
/// When the server did not confirm it of each.
pub fn terminate_clients(
    removal: &ClientRemoval,
    processes: &[i32],
    patience: Duration,
) -> Result<Vec<i32>, MpsError> {
    let (control, deadline) = (&removal.0, Deadline::after(patience));
    let known = match clients(control, deadline) {
        Err(ControlError::NoDaemon) => return Ok(Vec::new()),
        known => known.map_err(|error| MpsError(error.to_string()))?,
    };
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    for client in known.into_iter().filter(|client| processes.contains(&client.process)) {
        // One that does not let go must not take all the time of the others.
        match terminate(control, client, deadline.within(deadline.left() / 2)) {
            Ok(()) => removed.push(client.process),
            // It may have ended by itself meanwhile.
            Err(_) if clients(control, deadline).is_ok_and(|left| !left.contains(&client)) => {}
            Err(why) => failures.push(format!("process {}: {why}", client.process)),
        }
    }
    if failures.is_empty() {
        return Ok(removed);
    }
    Err(MpsError(format!("the MPS server did not confirm that it let clients go: {}", failures.join("; "))))
}

fn terminate(control: &Control, client: MpsClient, deadline: Deadline) -> Result<(), String> {
    let MpsClient { server, process } = client;
    let said = control.ask(&format!("terminate_client {server} {process}"), deadline);
    match said.map_err(|error| error.to_string())?.last().map(String::as_str) {
        Some("0") => Ok(()),
        Some(code) => Err(format!("it answered {code}")),
        None => Err("it answered nothing".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_finds_its_daemon_its_gpu_and_its_limits() {
        let (home, gpu) = (MpsDirectory("/h".into()), DeviceId("GPU-a".into()));
        let environment = client_environment(&home, &gpu, Bytes((5 << 30) + (1 << 19)), Some(50));
        let expected = [
            ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
            ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50"),
            ("CUDA_MPS_LOG_DIRECTORY", "/h/l"),
            ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=5120M"),
            ("CUDA_MPS_PIPE_DIRECTORY", "/h/p"),
            ("CUDA_VISIBLE_DEVICES", "GPU-a"),
        ];
        assert_eq!(environment, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let uncapped = client_environment(&home, &gpu, Bytes(1), None);
        assert!(!uncapped.contains_key("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
        assert_eq!(uncapped["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=1M", "no limit of nothing");
    }

    #[test]
    fn whoever_opts_out_is_sent_to_an_empty_folder() {
        let environment = environment_without_mps(&MpsDirectory("/h".into()));
        assert_eq!(environment, BTreeMap::from([("CUDA_MPS_PIPE_DIRECTORY".into(), "/h/n".into())]));
    }

    #[test]
    fn a_removal_survives_being_written_down() {
        let tools =
            MpsPrograms { control: "/c".into(), environment: BTreeMap::from([("PATH".into(), "/b".into())]) };
        let removal = ClientRemoval::new(&tools, &MpsDirectory("/h".into()));
        let text = serde_json::to_string(&removal).unwrap();
        assert_eq!(serde_json::from_str::<ClientRemoval>(&text).unwrap(), removal);
    }
}

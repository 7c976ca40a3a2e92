//! The GPU on which workloads are compared, and other processes that use it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use cohabit_gpu::{GpuProcess, GpuScan, NvmlSession};
use cohabit_types::{Bytes, Device};
use nix::unistd::{Uid, User};

use crate::error::ProfileError;

/// An unused GPU may show this much memory in use: its driver needs some.
const DRIVER_MEMORY: Bytes = Bytes(2 << 30);

/// The most additional memory that may stay in use after a set.
const MAX_LEFTOVER: Bytes = Bytes(256 << 20);

/// How long a GPU may take to release the memory of processes that have ended.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);

/// The time between two polls for that.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The GPU, with its NVML session.
pub(super) struct TargetGpu {
    gpus: NvmlSession,
    pub(super) device: Device,
}

impl TargetGpu {
    /// The GPU with this UUID, beginning of a UUID, or number; without a name, the only one.
    pub(super) fn open(library: Option<&Path>, name: Option<&str>) -> Result<TargetGpu, ProfileError> {
        let gpus = NvmlSession::open(library)?;
        let mut devices = gpus.devices();
        let ids: Vec<String> = devices
            .iter()
            .map(|device| {
                device.as_ref().map_or_else(|error| error.to_string(), |device| device.id.to_string())
            })
            .collect();
        let at = choose(&ids, name).map_err(ProfileError::NotThatGpu)?;
        Ok(TargetGpu { device: devices.swap_remove(at)?, gpus })
    }

    pub(super) fn scan(&self) -> Result<GpuScan, ProfileError> {
        Ok(self.gpus.scan(&self.device.id)?)
    }

    /// Refuses a GPU that other processes use.
    pub(super) fn must_be_free(&self) -> Result<(), ProfileError> {
        let scan = self.scan()?;
        let mut holders: Vec<String> = scan.processes.iter().map(holder).collect();
        if let Some(used) =
            scan.reading.memory_used.filter(|used| holders.is_empty() && *used > DRIVER_MEMORY)
        {
            holders.push(format!("processes that are not visible here, with {used}"));
        }
        if holders.is_empty() {
            return Ok(());
        }
        Err(ProfileError::Busy { gpu: self.device.id.to_string(), holders: holders.join(", ") })
    }

    /// Waits until no more memory is in use than before; an error if the GPU does not release it.
    pub(super) fn must_settle(&self, before: Option<Bytes>) -> Result<(), ProfileError> {
        let begin = Instant::now();
        loop {
            let used = self.scan()?.reading.memory_used;
            let (Some(used), Some(before)) = (used, before) else { return Ok(()) };
            if used <= before + MAX_LEFTOVER {
                return Ok(());
            }
            if begin.elapsed() > RELEASE_TIMEOUT {
                return Err(ProfileError::NotGivenBack { gpu: self.device.id.to_string(), used, before });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// The index of the GPU with this name among these UUIDs.
fn choose(ids: &[String], name: Option<&str>) -> Result<usize, String> {
    let list = || {
        let all = ids.iter().enumerate().map(|(number, id)| format!("{number} {id}"));
        all.collect::<Vec<_>>().join(", ")
    };
    let Some(name) = name else {
        return match ids.len() {
            0 => Err("the NVIDIA driver knows no GPU".to_owned()),
            1 => Ok(0),
            _ => Err(format!("there are several GPUs: name one with --gpu, of {}", list())),
        };
    };
    let named: Vec<usize> = match name.parse::<usize>() {
        Ok(number) => (number < ids.len()).then_some(number).into_iter().collect(),
        Err(_) => (0..ids.len()).filter(|at| ids[*at].starts_with(name)).collect(),
    };
    match named.as_slice() {
        [at] => Ok(*at),
        [] => Err(format!("there is no GPU {name}: there are {}", list())),
        _ => Err(format!("'{name}' begins the UUIDs of several GPUs: there are {}", list())),
    }
}

/// `python (PID 4242 of ada, 3 GiB)`
fn holder(process: &GpuProcess) -> String {
    let folder = format!("/proc/{}", process.pid);
    let name = fs::read_to_string(format!("{folder}/comm"));
    let owner = fs::metadata(&folder).ok().map(|folder| Uid::from_raw(folder.uid()));
    let owner =
        owner.and_then(|uid| User::from_uid(uid).ok().flatten()).map(|user| format!(" of {}", user.name));
    format!(
        "{} (PID {}{}{})",
        name.as_deref().map_or("a process", str::trim),
        process.pid,
        owner.unwrap_or_default(),
        process.memory.map_or(String::new(), |memory| format!(", {memory}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_gpu_is_named_by_number_uuid_or_beginning_of_its_uuid() {
        let two = ids(&["GPU-11aa", "GPU-22bb"]);
        for (name, at) in [("1", 1), ("GPU-11aa", 0), ("GPU-2", 1)] {
            assert_eq!(choose(&two, Some(name)), Ok(at));
        }
        assert_eq!(choose(&ids(&["GPU-11aa"]), None), Ok(0));
    }

    #[test]
    fn an_unknown_or_ambiguous_name_is_refused_with_the_list_of_gpus() {
        let two = ids(&["GPU-11aa", "GPU-22bb"]);
        for name in [None, Some("2"), Some("GPU-3"), Some("GPU-")] {
            let refusal = choose(&two, name).unwrap_err();
            assert!(refusal.ends_with("0 GPU-11aa, 1 GPU-22bb"), "{refusal}");
        }
        assert_eq!(choose(&[], None).unwrap_err(), "the NVIDIA driver knows no GPU");
    }

    #[test]
    fn a_process_is_shown_with_name_id_owner_and_memory() {
        let pid = std::process::id().cast_signed();
        let holder_name = holder(&GpuProcess { pid, memory: Some(Bytes(3 << 30)) });
        assert!(
            holder_name.contains(&format!("(PID {pid}")) && holder_name.ends_with(", 3 GiB)"),
            "{holder_name}"
        );
        assert_eq!(holder(&GpuProcess { pid: i32::MAX, memory: None }), "a process (PID 2147483647)");
    }
}

//! Processes on a GPU that Cohabit did not start. The head does not account for their memory.

use std::fs;
use std::path::Path;

use cohabit_client::types::{Bytes, Device};
use cohabit_gpu::{GpuProcess, NvmlSession};

use super::device_name::device_name;
use super::findings::Finding;

const CHECK: &str = "gpu processes";
/// Set in the environment of every rank and inherited by its processes.
const OF_A_RANK: &[u8] = b"COHABIT_PROGRESS=";
/// The name of the MPS programs, as truncated by the kernel.
const OF_MPS: &str = "nvidia-cuda-mps";

pub(super) fn check(gpus: &NvmlSession, device: &Device) -> Finding {
    match gpus.scan(&device.id) {
        Ok(look) => diagnose(device, &look.processes, Path::new("/proc")),
        Err(error) => Finding::error(CHECK, error.to_string(), "no job runs on it until NVML answers"),
    }
}

fn diagnose(device: &Device, processes: &[GpuProcess], proc: &Path) -> Finding {
    let foreign: Vec<&GpuProcess> =
        processes.iter().filter(|process| is_foreign(process.pid, proc)).collect();
    if foreign.is_empty() {
        return Finding::ok(CHECK, format!("none other than those of Cohabit on {}", device_name(device)));
    }
    let memory: u64 = foreign.iter().filter_map(|process| process.memory).map(|memory| memory.0).sum();
    let listed: Vec<String> = foreign.iter().map(|process| describe_process(process.pid, proc)).collect();
    let observed =
        format!("other processes hold {} on {}: {}", Bytes(memory), device_name(device), listed.join(", "));
    Finding::warning(CHECK, observed, "end them, or jobs find less GPU memory than they ask for")
}

/// MPS servers do not count: they hold memory for their clients, which are checked separately.
fn is_foreign(pid: i32, proc: &Path) -> bool {
    let environment = fs::read(proc.join(pid.to_string()).join("environ")).unwrap_or_default();
    let is_of_a_rank = environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(OF_A_RANK));
    !is_of_a_rank && program(pid, proc).is_none_or(|program| !program.starts_with(OF_MPS))
}

fn program(pid: i32, proc: &Path) -> Option<String> {
    Some(fs::read_to_string(proc.join(pid.to_string()).join("comm")).ok()?.trim().to_owned())
}

/// `pid 123 (python)`. In a container, the pids of the driver may belong to another pid namespace.
fn describe_process(pid: i32, proc: &Path) -> String {
    let program = program(pid, proc).unwrap_or_else(|| "not visible from here".to_owned());
    format!("pid {pid} ({program})")
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{DeviceId, DeviceKind};

    use super::super::findings::Diagnosis;
    use super::*;

    fn status_of(processes: &[(i32, &str, &str)]) -> Finding {
        let proc = tempfile::tempdir().unwrap();
        for (pid, comm, environ) in processes {
            let folder = proc.path().join(pid.to_string());
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("comm"), format!("{comm}\n")).unwrap();
            fs::write(folder.join("environ"), environ).unwrap();
        }
        let gone = GpuProcess { pid: 999, memory: None };
        let observed =
            processes.iter().map(|(pid, ..)| GpuProcess { pid: *pid, memory: Some(Bytes(1 << 30)) });
        let observed: Vec<_> = if processes.is_empty() { vec![gone] } else { observed.collect() };
        let device = Device::new(DeviceId("GPU-a".into()), DeviceKind::Gpu, "NVIDIA H200", None);
        diagnose(&device, &observed, proc.path())
    }

    #[test]
    fn ranks_and_mps_servers_are_not_foreign() {
        let rank = (7, "python", "HOME=/\0COHABIT_PROGRESS=/state/ranks/1/1/0/progress\0");
        let server = (8, "nvidia-cuda-mps", "HOME=/\0");
        assert_eq!(status_of(&[rank, server]).status, Diagnosis::Ok);
    }

    #[test]
    fn a_foreign_process_is_reported_with_its_memory() {
        let found = status_of(&[(7, "python", "HOME=/\0"), (8, "blender", "HOME=/\0")]);
        assert_eq!(found.status, Diagnosis::Warning);
        assert!(
            found.observed.contains("hold 2 GiB") && found.observed.contains("pid 7 (python)"),
            "{}",
            found.observed
        );
    }

    #[test]
    fn an_invisible_process_is_foreign() {
        let found = status_of(&[]);
        assert!(found.observed.contains("pid 999 (not visible from here)"), "{}", found.observed);
    }
}

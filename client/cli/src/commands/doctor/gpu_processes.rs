//! Processes on a GPU that Cohabit did not start: the head knows nothing of the memory they hold.

use std::fs;
use std::path::Path;

use cohabit_client::proto::{Bytes, Device};
use cohabit_gpu::{GpuProcess, NvmlSession};

use super::findings::Finding;
use super::gpus::name;

const CHECK: &str = "gpu processes";
/// Every rank has it in its environment, and so have the processes that it starts.
const OF_A_RANK: &[u8] = b"COHABIT_PROGRESS=";
/// The name of MPS's programs, as the kernel shortens it.
const OF_MPS: &str = "nvidia-cuda-mps";

pub(super) fn look(gpus: &NvmlSession, device: &Device) -> Finding {
    match gpus.scan(&device.id) {
        Ok(look) => judge(device, &look.processes, Path::new("/proc")),
        Err(error) => Finding::broken(CHECK, error.to_string(), "nothing runs on it until it answers"),
    }
}

fn judge(device: &Device, processes: &[GpuProcess], proc: &Path) -> Finding {
    let strangers: Vec<&GpuProcess> =
        processes.iter().filter(|process| is_foreign(process.pid, proc)).collect();
    if strangers.is_empty() {
        return Finding::good(CHECK, format!("none but those of Cohabit on {}", name(device)));
    }
    let memory: u64 = strangers.iter().filter_map(|process| process.memory).map(|memory| memory.0).sum();
    let listed: Vec<String> = strangers.iter().map(|process| told(process.pid, proc)).collect();
    let seen = format!("others hold {} on {}: {}", Bytes(memory), name(device), listed.join(", "));
    Finding::doubtful(CHECK, seen, "end them, or jobs find less memory there than they ask for")
}

/// An MPS server holds memory for its clients alone, and each of them is judged by itself.
fn is_foreign(pid: i32, proc: &Path) -> bool {
    let environment = fs::read(proc.join(pid.to_string()).join("environ")).unwrap_or_default();
    let is_of_a_rank = environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(OF_A_RANK));
    !is_of_a_rank && program(pid, proc).is_none_or(|program| !program.starts_with(OF_MPS))
}

fn program(pid: i32, proc: &Path) -> Option<String> {
    Some(fs::read_to_string(proc.join(pid.to_string()).join("comm")).ok()?.trim().to_owned())
}

/// `pid 123 (python)`; in a container, the driver's numbers may be those of another world.
fn told(pid: i32, proc: &Path) -> String {
    let program = program(pid, proc).unwrap_or_else(|| "not to be seen from here".to_owned());
    format!("pid {pid} ({program})")
}

#[cfg(test)]
mod tests {
    use cohabit_client::proto::{DeviceId, DeviceKind};

    use super::super::findings::Diagnosis;
    use super::*;

    fn judged(processes: &[(i32, &str, &str)]) -> Finding {
        let proc = tempfile::tempdir().unwrap();
        for (pid, comm, environ) in processes {
            let folder = proc.path().join(pid.to_string());
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("comm"), format!("{comm}\n")).unwrap();
            fs::write(folder.join("environ"), environ).unwrap();
        }
        let gone = GpuProcess { pid: 999, memory: None };
        let seen = processes.iter().map(|(pid, ..)| GpuProcess { pid: *pid, memory: Some(Bytes(1 << 30)) });
        let seen: Vec<_> = if processes.is_empty() { vec![gone] } else { seen.collect() };
        let device = Device::new(DeviceId("GPU-a".into()), DeviceKind::Gpu, "NVIDIA H200", None);
        judge(&device, &seen, proc.path())
    }

    #[test]
    fn ranks_and_mps_servers_are_no_strangers() {
        let rank = (7, "python", "HOME=/\0COHABIT_PROGRESS=/state/ranks/1/1/0/progress\0");
        let server = (8, "nvidia-cuda-mps", "HOME=/\0");
        assert_eq!(judged(&[rank, server]).judgement, Diagnosis::Good);
    }

    #[test]
    fn a_stranger_is_named_with_the_memory_that_it_holds() {
        let found = judged(&[(7, "python", "HOME=/\0"), (8, "blender", "HOME=/\0")]);
        assert_eq!(found.judgement, Diagnosis::Doubtful);
        assert!(found.seen.contains("hold 2 GiB") && found.seen.contains("pid 7 (python)"), "{}", found.seen);
    }

    #[test]
    fn a_process_that_cannot_be_seen_is_a_stranger() {
        let found = judged(&[]);
        assert!(found.seen.contains("pid 999 (not to be seen from here)"), "{}", found.seen);
    }
}

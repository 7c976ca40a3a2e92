//! Processes that use GPUs of the made-up world: each writes its own file, and the dead are forgotten.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::world::{read_json, write_json};
use crate::{FakeGpu, FakeWorld};

/// A process that uses GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it began, in ticks since the machine did: another process may get its number later.
    pub began: u64,
    /// How it reached the GPUs.
    pub via: GpuRoute,
    /// The process that all of its program belong to: they do not hold each other up.
    pub family: i32,
    /// Bytes that it holds of each GPU, by UUID.
    pub holds: BTreeMap<String, u64>,
}

/// How a process reached a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuRoute {
    /// By itself, taking turns with all others.
    Itself,
    /// As a client of this MPS server.
    Client(i32),
    /// It is an MPS server.
    Server,
    /// It only holds memory: somebody else's, as tests make up.
    Foreign,
}

/// Memory that is not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes that were asked for.
    pub wanted: u64,
    /// Bytes that this process could still have had.
    pub free: u64,
}

impl Process {
    /// The calling process, which holds nothing yet.
    ///
    /// # Errors
    /// When the system does not know it.
    pub fn this(via: GpuRoute, family: i32) -> io::Result<Process> {
        let pid = std::process::id() as i32;
        let began = began(pid).ok_or_else(|| io::Error::other("/proc does not know this process"))?;
        Ok(Process { pid, began, via, family, holds: BTreeMap::new() })
    }

    fn lives(&self) -> bool {
        began(self.pid) == Some(self.began)
    }
}

/// When a process began, if it runs; one that has ended and only waits for its parent does not.
fn began(pid: i32) -> Option<u64> {
    let stat = procfs::process::Process::new(pid).ok()?.stat().ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
}

impl FakeWorld {
    /// All processes that live and use a GPU.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        let Ok(entries) = fs::read_dir(self.root().join("processes")) else { return Vec::new() };
        let files =
            entries.flatten().map(|entry| entry.path()).filter(|it| it.extension() == Some("json".as_ref()));
        let mut processes = Vec::new();
        for file in files {
            match read_json::<Process>(&file) {
                Some(process) if process.lives() => processes.push(process),
                // Somebody else may have removed it.
                Some(_) => drop(fs::remove_file(file)),
                None => {}
            }
        }
        processes.sort_by_key(|process| process.pid);
        processes
    }

    /// The living processes on this GPU.
    #[must_use]
    pub fn processes_on(&self, uuid: &str) -> Vec<Process> {
        self.processes().into_iter().filter(|process| process.holds.contains_key(uuid)).collect()
    }

    /// The living clients of MPS servers on this GPU.
    #[must_use]
    pub fn clients(&self, uuid: &str) -> Vec<i32> {
        let clients = self.processes_on(uuid).into_iter().filter(|it| matches!(it.via, GpuRoute::Client(_)));
        clients.map(|process| process.pid).collect()
    }

    /// Lets a living process hold this memory, as if somebody else had started it on the GPU.
    ///
    /// # Errors
    /// When there is no such process, or the folder cannot be written.
    pub fn add_foreign_process(&self, pid: i32, uuid: &str, bytes: u64) -> io::Result<()> {
        let began = began(pid).ok_or_else(|| io::Error::other(format!("no process {pid} runs")))?;
        let holds = BTreeMap::from([(uuid.to_owned(), bytes)]);
        self.write_process(&Process { pid, began, via: GpuRoute::Foreign, family: pid, holds })
    }

    /// Takes a process off its GPUs, as its end would.
    ///
    /// # Errors
    /// When it is on none.
    pub fn remove_process(&self, pid: i32) -> io::Result<()> {
        fs::remove_file(self.process_file(pid))
    }

    /// Writes down what a process holds.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn write_process(&self, process: &Process) -> io::Result<()> {
        write_json(&self.process_file(process.pid), process)
    }

    /// Bytes in use on a GPU: of all processes and of the driver itself.
    #[must_use]
    pub fn memory_used(&self, gpu: &FakeGpu) -> u64 {
        let held = self.processes().iter().filter_map(|it| it.holds.get(&gpu.uuid)).sum::<u64>();
        held.saturating_add(gpu.reserved).min(gpu.memory)
    }

    /// Lets a process hold so many bytes more of a GPU, if they are free and its limit allows it.
    ///
    /// # Errors
    /// When the memory is not to be had, inside; when the folder cannot be written, outside.
    pub fn allocate(
        &self,
        process: &mut Process,
        gpu: &FakeGpu,
        bytes: u64,
        limit: Option<u64>,
    ) -> io::Result<Result<(), OutOfMemory>> {
        let _locked = self.lock()?;
        let free_on_gpu = gpu.memory - self.memory_used(gpu);
        let held = process.holds.entry(gpu.uuid.clone()).or_default();
        let free = limit.map_or(free_on_gpu, |limit| limit.saturating_sub(*held).min(free_on_gpu));
        if bytes > free {
            return Ok(Err(OutOfMemory { wanted: bytes, free }));
        }
        *held += bytes;
        self.write_process(process).map(Ok)
    }

    fn process_file(&self, pid: i32) -> PathBuf {
        self.root().join("processes").join(format!("{pid}.json"))
    }
}

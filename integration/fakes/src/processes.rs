//! The processes that use GPUs of the fake world. Each writes its own file; files of dead processes are
//! removed.

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
    /// Its process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot; distinguishes it from a later process with the same id.
    pub began: u64,
    /// How it accesses the GPUs.
    pub via: GpuRoute,
    /// The first process of its program; processes of one program do not slow each other down.
    pub family: i32,
    /// The bytes that it holds on each GPU, by UUID.
    pub holds: BTreeMap<String, u64>,
}

/// How a process accesses a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuRoute {
    /// Directly, time-sliced with others.
    Itself,
    /// As a client of this MPS server.
    Client(i32),
    /// It is an MPS server.
    Server,
    /// It only holds memory: a foreign process that a test adds.
    Foreign,
    /// It draws: a foreign process that a test adds.
    Graphics,
}

/// An allocation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The requested bytes.
    pub wanted: u64,
    /// The bytes that were available to this process.
    pub free: u64,
}

impl Process {
    /// The calling process, which holds nothing yet.
    ///
    /// # Errors
    /// When `/proc` does not show it.
    pub fn this(via: GpuRoute, family: i32) -> io::Result<Process> {
        let pid = std::process::id() as i32;
        let began = began(pid).ok_or_else(|| io::Error::other("/proc does not know this process"))?;
        Ok(Process { pid, began, via, family, holds: BTreeMap::new() })
    }

    fn lives(&self) -> bool {
        began(self.pid) == Some(self.began)
    }
}

/// When a process started, if it runs; zombies do not run.
fn began(pid: i32) -> Option<u64> {
    let stat = procfs::process::Process::new(pid).ok()?.stat().ok()?;
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.starttime)
}

impl FakeWorld {
    /// All living processes that use a GPU.
    #[must_use]
    pub fn processes(&self) -> Vec<Process> {
        let Ok(entries) = fs::read_dir(self.root().join("processes")) else { return Vec::new() };
        let files =
            entries.flatten().map(|entry| entry.path()).filter(|it| it.extension() == Some("json".as_ref()));
        let mut processes = Vec::new();
        for file in files {
            match read_json::<Process>(&file) {
                Some(process) if process.lives() => processes.push(process),
                // Another process may have removed it.
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

    /// Adds a foreign process: lets this living process hold memory.
    ///
    /// # Errors
    /// When there is no such process, or the directory cannot be written.
    pub fn add_foreign_process(&self, pid: i32, uuid: &str, bytes: u64) -> io::Result<()> {
        self.add_process(pid, uuid, bytes, GpuRoute::Foreign)
    }

    /// Adds a process that draws, such as a display server.
    ///
    /// # Errors
    /// When there is no such process, or the directory cannot be written.
    pub fn add_graphics_process(&self, pid: i32, uuid: &str, bytes: u64) -> io::Result<()> {
        self.add_process(pid, uuid, bytes, GpuRoute::Graphics)
    }

    fn add_process(&self, pid: i32, uuid: &str, bytes: u64, via: GpuRoute) -> io::Result<()> {
        let began = began(pid).ok_or_else(|| io::Error::other(format!("no process {pid} runs")))?;
        let holds = BTreeMap::from([(uuid.to_owned(), bytes)]);
        self.write_process(&Process { pid, began, via, family: pid, holds })
    }

    /// Removes a process from its GPUs, as its end would.
    ///
    /// # Errors
    /// When it uses no GPU.
    pub fn remove_process(&self, pid: i32) -> io::Result<()> {
        fs::remove_file(self.process_file(pid))
    }

    /// Stores what a process holds.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn write_process(&self, process: &Process) -> io::Result<()> {
        write_json(&self.process_file(process.pid), process)
    }

    /// The bytes in use on a GPU, by all processes and the driver.
    #[must_use]
    pub fn memory_used(&self, gpu: &FakeGpu) -> u64 {
        let held = self.processes().iter().filter_map(|it| it.holds.get(&gpu.uuid)).sum::<u64>();
        held.saturating_add(gpu.reserved).min(gpu.memory)
    }

    /// Allocates this many bytes of a GPU for a process, if they are free and within its limit.
    ///
    /// # Errors
    /// The inner error: the memory is not available. The outer error: the directory cannot be written.
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

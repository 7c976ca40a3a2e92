//! A fake cgroup tree in memory for tests, with the rules of the kernel:
//!
//! - A controller, and its files, exist only if the parent enables it for its children.
//! - A cgroup cannot have processes and enable controllers for children at once (EBUSY).
//! - A cgroup with processes or children cannot be removed (EBUSY).
//! - Events are counted in the cgroup and all its ancestors.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use cohabit_gpu::DeviceRange;
use nix::errno::Errno;

use super::tree::CgroupTree;

/// The files of each controller with their initial content.
const FILES: [(&str, &str, &str); 10] = [
    ("cpu", "cpu.max", "max 100000"),
    ("cpu", "cpu.weight", "100"),
    ("memory", "memory.max", "max"),
    ("memory", "memory.high", "max"),
    ("memory", "memory.stat", ""),
    ("memory", "memory.swap.max", "max"),
    ("memory", "memory.oom.group", "0"),
    ("memory", "memory.peak", "0"),
    ("pids", "pids.max", "max"),
    ("pids", "pids.current", "0"),
];

/// A tree of cgroups.
pub(super) struct FakeKernel {
    cgroups: Mutex<BTreeMap<PathBuf, Cgroup>>,
    takes_control: bool,
    filters_devices: bool,
    /// A file that cannot be written.
    refused: Option<&'static str>,
}

#[derive(Default)]
struct Cgroup {
    controllers: BTreeSet<String>,
    passed_on: BTreeSet<String>,
    processes: BTreeSet<i32>,
    files: BTreeMap<String, String>,
    closed: Vec<DeviceRange>,
    ooms: u64,
    oom_kills: u64,
}

impl FakeKernel {
    /// One cgroup with these controllers and processes.
    pub(super) fn new(path: &str, controllers: &str, processes: &[i32]) -> FakeKernel {
        let controllers = controllers.split(' ').map(str::to_owned).collect();
        let first = Cgroup { processes: processes.iter().copied().collect(), ..Cgroup::with(controllers) };
        FakeKernel {
            cgroups: Mutex::new([(path.into(), first)].into()),
            takes_control: true,
            filters_devices: true,
            refused: None,
        }
    }

    /// The same, but controllers cannot be enabled for children.
    pub(super) fn read_only_control(self) -> FakeKernel {
        FakeKernel { takes_control: false, ..self }
    }

    /// The same, but this process may not filter devices.
    pub(super) fn without_device_filter(self) -> FakeKernel {
        FakeKernel { filters_devices: false, ..self }
    }

    /// The same, but nothing can be written to files of this name.
    pub(super) fn refusing(self, file: &'static str) -> FakeKernel {
        FakeKernel { refused: Some(file), ..self }
    }

    /// The kernel itself writes to a file.
    pub(super) fn set(&self, file: &Path, text: &str) {
        let (cgroup, name) = (file.parent().unwrap(), file.file_name().unwrap().to_string_lossy());
        self.lock().get_mut(cgroup).unwrap().files.insert(name.into_owned(), text.to_owned());
    }

    pub(super) fn closed(&self, path: &Path) -> Vec<DeviceRange> {
        self.lock()[path].closed.clone()
    }

    pub(super) fn processes(&self, path: &str) -> Vec<i32> {
        self.lock()[Path::new(path)].processes.iter().copied().collect()
    }

    /// Adds a process.
    pub(super) fn add(&self, path: &Path, process: i32) {
        self.lock().get_mut(path).unwrap().processes.insert(process);
    }

    /// The kernel kills the processes in `victim` because `short` has reached its limit.
    pub(super) fn out_of_memory(&self, victim: &Path, short: &Path) {
        for (path, cgroup) in self.lock().iter_mut() {
            cgroup.oom_kills += u64::from(victim.starts_with(path));
            cgroup.ooms += u64::from(short.starts_with(path));
            if let Some(peak) = cgroup.files.get("memory.max").filter(|limit| *limit != "max").cloned() {
                cgroup.files.insert("memory.peak".into(), peak);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Cgroup>> {
        self.cgroups.lock().unwrap()
    }

    fn pass_on(&self, path: &Path, text: &str) -> Result<(), Errno> {
        let mut cgroups = self.lock();
        let cgroup = cgroups.get_mut(path).ok_or(Errno::ENOENT)?;
        let wanted: BTreeSet<String> =
            text.split(' ').map(|word| word.trim_start_matches('+').into()).collect();
        match () {
            () if !self.takes_control => return Err(Errno::EROFS),
            () if !wanted.is_subset(&cgroup.controllers) => return Err(Errno::ENOENT),
            () if !cgroup.processes.is_empty() => return Err(Errno::EBUSY),
            () => {}
        }
        cgroup.passed_on.extend(wanted.clone());
        let within = cgroups.iter_mut().filter(|(it, _)| it.parent() == Some(path));
        within.for_each(|(_, cgroup)| cgroup.gain(&wanted));
        Ok(())
    }

    fn enter(&self, path: &Path, process: i32) -> Result<(), Errno> {
        let mut cgroups = self.lock();
        if !cgroups.get(path).ok_or(Errno::ENOENT)?.passed_on.is_empty() {
            return Err(Errno::EBUSY);
        }
        cgroups.values_mut().for_each(|cgroup| _ = cgroup.processes.remove(&process));
        cgroups.get_mut(path).ok_or(Errno::ENOENT)?.processes.insert(process);
        Ok(())
    }

    fn kill(&self, path: &Path) {
        let mut cgroups = self.lock();
        let within = cgroups.iter_mut().filter(|(it, _)| it.starts_with(path));
        within.for_each(|(_, cgroup)| cgroup.processes.clear());
    }
}

impl Cgroup {
    fn with(controllers: BTreeSet<String>) -> Cgroup {
        let mut cgroup = Cgroup::default();
        cgroup.gain(&controllers);
        cgroup
    }

    fn gain(&mut self, controllers: &BTreeSet<String>) {
        for (controller, file, value) in FILES {
            if controllers.contains(controller) && !self.controllers.contains(controller) {
                self.files.insert(file.into(), value.into());
            }
        }
        self.controllers.extend(controllers.clone());
    }
}

impl CgroupTree for FakeKernel {
    fn read(&self, file: &Path) -> io::Result<String> {
        let (path, name) = parts(file);
        let cgroups = self.lock();
        let cgroup = cgroups.get(path).ok_or(Errno::ENOENT)?;
        let words = |words: &BTreeSet<String>| Vec::from_iter(words.clone()).join(" ") + "\n";
        Ok(match name {
            "cgroup.controllers" => words(&cgroup.controllers),
            "cgroup.subtree_control" => words(&cgroup.passed_on),
            "cgroup.procs" => cgroup.processes.iter().map(|it| format!("{it}\n")).collect(),
            "memory.events" => {
                format!("low 0\nhigh 0\nmax 0\noom {}\noom_kill {}\n", cgroup.ooms, cgroup.oom_kills)
            }
            other => cgroup.files.get(other).ok_or(Errno::ENOENT)?.clone(),
        })
    }

    fn write(&self, file: &Path, text: &str) -> io::Result<()> {
        let (path, name) = parts(file);
        match name {
            "cgroup.subtree_control" => return Ok(self.pass_on(path, text)?),
            "cgroup.procs" => return Ok(self.enter(path, text.parse().map_err(|_| Errno::EINVAL)?)?),
            "cgroup.kill" => {
                self.kill(path);
                return Ok(());
            }
            _ => {}
        }
        if self.refused == Some(name) {
            return Err(Errno::EPERM.into());
        }
        let mut cgroups = self.lock();
        let cgroup = cgroups.get_mut(path).ok_or(Errno::ENOENT)?;
        *cgroup.files.get_mut(name).ok_or(Errno::ENOENT)? = text.to_owned();
        Ok(())
    }

    fn close_devices(&self, cgroup: &Path, closed: &[DeviceRange]) -> io::Result<()> {
        if !self.filters_devices {
            return Err(Errno::EPERM.into());
        }
        self.lock().get_mut(cgroup).ok_or(Errno::ENOENT)?.closed.extend(closed);
        Ok(())
    }

    fn make(&self, cgroup: &Path) -> io::Result<()> {
        let mut cgroups = self.lock();
        if cgroups.contains_key(cgroup) {
            return Err(Errno::EEXIST.into());
        }
        let above = cgroup.parent().and_then(|above| cgroups.get(above)).ok_or(Errno::ENOENT)?;
        let made = Cgroup::with(above.passed_on.clone());
        cgroups.insert(cgroup.to_owned(), made);
        Ok(())
    }

    fn remove(&self, cgroup: &Path) -> io::Result<()> {
        let mut cgroups = self.lock();
        let has_more = cgroups.keys().any(|it| it.parent() == Some(cgroup));
        if !cgroups.get(cgroup).ok_or(Errno::ENOENT)?.processes.is_empty() || has_more {
            return Err(Errno::EBUSY.into());
        }
        cgroups.remove(cgroup);
        Ok(())
    }

    fn children(&self, cgroup: &Path) -> Vec<PathBuf> {
        self.lock().keys().filter(|it| it.parent() == Some(cgroup)).cloned().collect()
    }
}

fn parts(file: &Path) -> (&Path, &str) {
    (file.parent().unwrap(), file.file_name().unwrap().to_str().unwrap())
}

//! A cluster whose worker finds fake GPUs, with the actions and checks that tests use.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use cohabit_fakes::{FakeGpu, FakeWorld, Installed, NvmlFault, examples};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::kit::{Cluster, until};

/// A head and one worker with fake GPUs.
pub(crate) struct GpuCluster {
    pub(crate) cluster: Cluster,
    pub(super) world: FakeWorld,
    installed: Installed,
}

/// The flags of a job that shares a GPU.
pub(super) const PART: [&str; 4] = ["--gpus", "0.3", "--gpu-mem", "20G"];

/// The driver finds this GPU no more.
pub(super) fn falls_off(gpu: &mut FakeGpu) {
    gpu.faults = [("*".to_owned(), NvmlFault::Lost)].into();
}

impl GpuCluster {
    /// Starts a cluster with this many GPUs in their default state.
    pub(super) fn start(gpus: u8) -> GpuCluster {
        GpuCluster::with(gpus, &[], |_| {})
    }

    /// Starts a cluster with this many GPUs, each changed by `change`, and a worker with these flags.
    pub(super) fn with(gpus: u8, flags: &[&str], change: impl Fn(&mut FakeGpu)) -> GpuCluster {
        GpuCluster::of(Cluster::start(&[]), gpus, flags, change)
    }

    /// The same for a head that is already running.
    pub(crate) fn of(
        cluster: Cluster,
        gpus: u8,
        flags: &[&str],
        change: impl Fn(&mut FakeGpu),
    ) -> GpuCluster {
        let mut gpu_cluster = GpuCluster::without_worker(cluster, gpus, change);
        gpu_cluster.add_worker(flags);
        gpu_cluster
    }

    /// The same with a driver of this version, and one GPU.
    pub(super) fn with_driver(cluster: Cluster, version: &str) -> GpuCluster {
        let mut gpu_cluster = GpuCluster::without_worker(cluster, 1, |_| {});
        gpu_cluster.world.edit_library(|library| library.driver = version.to_owned()).unwrap();
        gpu_cluster.add_worker(&[]);
        gpu_cluster
    }

    fn without_worker(cluster: Cluster, gpus: u8, change: impl Fn(&mut FakeGpu)) -> GpuCluster {
        let changed = |number| {
            let mut gpu = FakeGpu::numbered(number);
            change(&mut gpu);
            gpu
        };
        let world =
            FakeWorld::create(&cluster.folder().join("world"), (0..gpus).map(changed).collect()).unwrap();
        let installed = world.install(&examples().unwrap()).unwrap();
        GpuCluster { cluster, world, installed }
    }

    /// Adds a worker that finds the fakes in place of NVIDIA's programs and library.
    pub(super) fn add_worker(&mut self, flags: &[&str]) {
        let search_path = self.installed.search_path();
        let library = self.installed.nvml.display().to_string();
        let flags = [&["--nvml-library", &library][..], flags].concat();
        self.cluster.add_worker_in(&[("PATH", &search_path)], "auto", &flags);
    }

    /// Adds another machine with this many GPUs; their numbers start here.
    pub(super) fn add_machine(&mut self, first: u8, gpus: u8) -> FakeWorld {
        let folder = self.cluster.folder().join(format!("world{first}"));
        let world =
            FakeWorld::create(&folder, (first..first + gpus).map(FakeGpu::numbered).collect()).unwrap();
        let installed = world.install(&examples().unwrap()).unwrap();
        let library = installed.nvml.display().to_string();
        let (search_path, flags) = (installed.search_path(), ["--nvml-library", &library]);
        self.cluster.add_worker_in(&[("PATH", &search_path)], "auto", &flags);
        world
    }

    /// The findings of `doctor` on the worker's machine, by topic.
    pub(super) fn doctor(&self, flags: &[&str]) -> Vec<Value> {
        let library = self.installed.nvml.display().to_string();
        let arguments = [&["doctor", "--output", "json", "--nvml-library", &library][..], flags].concat();
        let mut command = self.cluster.command(&arguments);
        // A failed probe keeps its logs in the temporary directory.
        command.env("PATH", self.installed.search_path()).env("TMPDIR", self.cluster.folder());
        let output = command.output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        document["findings"].as_array().unwrap().clone()
    }

    /// The UUID of the GPU of this number.
    pub(super) fn uuid(&self, number: usize) -> String {
        self.world.gpus()[number].uuid.clone()
    }

    /// Submits a fake training with these arguments. Returns the job's number.
    pub(super) fn submit(&self, flags: &[&str], client: &[&str]) -> String {
        let program = self.installed.client.display().to_string();
        let arguments = [&["submit", "--output", "quiet"], flags, &["--", &program], client].concat();
        self.cluster.ok(&arguments).trim().to_owned()
    }

    /// Whether processes of all users can run the fakes, which depends on where they were built.
    pub(super) fn is_reachable_for_all(&self) -> bool {
        let mut client = Command::new(&self.installed.client);
        client.arg("--help").uid(65_534).stdout(Stdio::null()).stderr(Stdio::null());
        client.status().is_ok()
    }

    /// The path of the fake training program.
    pub(super) fn client(&self) -> String {
        self.installed.client.display().to_string()
    }

    /// Submits a fake training that runs until it is stopped.
    pub(crate) fn submit_endless(&self, flags: &[&str]) -> String {
        self.submit(flags, &["--steps", "1000000", "--rate", "50"])
    }

    /// The entry of `nodes` for the GPU of this number.
    pub(super) fn device(&self, number: usize) -> Value {
        let uuid = self.uuid(number);
        let nodes = self.cluster.json(&["nodes"]);
        let devices =
            nodes["nodes"].as_array().unwrap().iter().flat_map(|it| it["devices"].as_array().unwrap());
        devices.clone().find(|device| device["id"] == uuid.as_str()).unwrap().clone()
    }

    pub(super) fn until_health(&self, number: usize, health: &str) {
        until(&format!("GPU {number} is {health}"), || self.device(number)["health"] == health);
    }

    /// Waits until `show` reports this state of enforcement for the job.
    pub(super) fn until_sharing(&self, job: &str, sharing: &str) {
        until(&format!("job {job} shares {sharing}"), || self.cluster.show(job)["sharing"] == sharing);
    }

    /// Waits until the job has reported a step in this attempt.
    pub(super) fn until_steps(&self, job: &str, attempt: u64) {
        let steps =
            |shown: &Value| shown["attempt"] == attempt && shown["progress"]["step"].as_u64() > Some(0);
        until(&format!("job {job} takes steps"), || steps(&self.cluster.show(job)));
    }

    /// Waits until the GPU's MPS server has this many clients.
    pub(super) fn until_clients(&self, number: usize, count: usize) -> Vec<i32> {
        let uuid = self.uuid(number);
        until(&format!("{count} client(s) on GPU {number}"), || self.world.clients(&uuid).len() == count);
        self.world.clients(&uuid)
    }

    /// The value of a variable in a job's environment.
    pub(super) fn environment_of(&self, flags: &[&str]) -> String {
        let arguments = [&["run"][..], flags, &["--", "env"]].concat();
        self.cluster.ok(&arguments)
    }

    /// The processes of this cluster's fake MPS daemons and servers.
    pub(super) fn mps_processes(&self) -> Vec<i32> {
        self.mps_processes_of("nvidia-cuda-mps")
    }

    /// The ones whose command line contains this.
    pub(super) fn mps_processes_of(&self, program: &str) -> Vec<i32> {
        let bin = self.installed.bin.display().to_string();
        let mine = crate::kit::processes_with(&bin).into_iter();
        mine.filter(|pid| command_line(*pid).contains(program)).collect()
    }
}

/// The command line of a process that may have ended.
fn command_line(pid: i32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// MPS daemons outlive their worker by design; the test must end them.
impl Drop for GpuCluster {
    fn drop(&mut self) {
        for pid in self.mps_processes() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

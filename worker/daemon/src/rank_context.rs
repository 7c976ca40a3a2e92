//! What the ranks of this worker have in common, and the complete environment of each: login variables, the
//! job's own variables, those of the core, and the paths, devices and times of this host. Nothing else of the
//! daemon's environment is passed on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_host::account::Account;
use cohabit_host::cgroup::Cgroups;
use cohabit_host::clock;
use cohabit_host::log::LogLimits;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_host::records::StartRecord;
use cohabit_types::{ApplicationAccess, Span, Time};
use cohabit_worker_core::{LEASE_TERM, RankStart};

use crate::acknowledgements::Acknowledgements;
use crate::checkpoints;
use crate::code::CodeCopies;
use crate::executor_pool::ExecutorPool;
use crate::gpu::MpsDirectories;
use crate::isolation::{AccountChoice, AccountError, Isolator};
use crate::options::WorkerOptions;
use crate::search_path::DEFAULT_PATH;
use crate::state_directory::StateDirectory;

/// The variables that programs expect from a login.
const LOGIN_VARIABLES: [&str; 9] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// Not passed to other users: the directory for temporary files may be the daemon's own.
const TEMPORARY_DIRECTORY: &str = "TMPDIR";

/// The prefix of variables that only the worker sets on a host with GPUs: with them a job could reach another
/// MPS daemon than its own.
const MPS_PREFIX: &str = "CUDA_MPS_";

/// What all ranks of this worker have in common.
#[derive(Debug, Clone)]
pub(crate) struct RankContext {
    pub(crate) state: StateDirectory,
    pub(crate) isolation: Isolator,
    pub(crate) acknowledgements: Acknowledgements,
    pub(crate) executors: ExecutorPool,
    pub(crate) code: Arc<CodeCopies>,
    orphan_grace: Span,
    log: LogLimits,
    /// The address of the head, for applications.
    head: String,
    login_variables: BTreeMap<String, String>,
    pub(crate) gpus: Arc<MpsDirectories>,
    pub(crate) nvml_library: Option<PathBuf>,
}

impl RankContext {
    pub(crate) fn new(
        options: &WorkerOptions,
        state: &StateDirectory,
        isolation: Isolator,
        gpus: MpsDirectories,
        code: CodeCopies,
        acknowledgements: Acknowledgements,
    ) -> RankContext {
        RankContext {
            code: code.into(),
            state: state.clone(),
            isolation,
            acknowledgements,
            executors: ExecutorPool::new(options.executor_program.clone(), state.root().to_owned()),
            orphan_grace: options.orphan_grace,
            log: options.log,
            head: options.head.clone(),
            nvml_library: options.nvml_library.clone(),
            login_variables: login_variables(|name| std::env::var(name).ok()),
            gpus: gpus.into(),
        }
    }

    /// The cgroups of ranks, where they can be used.
    pub(crate) fn cgroups(&self) -> Option<Cgroups> {
        self.isolation.cgroups().cloned()
    }

    pub(crate) fn directory_of(&self, start: &RankStart) -> RankDirectory {
        RankDirectory::for_rank(&self.state.ranks(), start.rank)
    }

    /// Everything that the executor of this rank, which runs as this account, needs. Creates the directory
    /// for its checkpoints. Blocks.
    ///
    /// # Errors
    /// When the rank cannot run as its user, or the directory cannot be created.
    pub(crate) fn prepare(
        &self,
        mut rank: RankStart,
        chosen: Option<AccountChoice>,
        leased_at: Time,
    ) -> Result<StartRecord, AccountError> {
        let folder = self.directory_of(&rank);
        rank.private_uid = chosen.as_ref().filter(|it| it.is_private).map(|it| it.account.uid);
        let account = chosen.map(|it| it.account);
        let checkpoints = checkpoints::prepare(&self.state, &rank, account.as_ref())?;
        let removal = self.gpus.removal(&rank.devices, rank.access);
        let cgroup = self.isolation.cgroup(&rank);
        let copy = self.code.copy_of(&rank);
        let paths = [
            ("COHABIT_CHECKPOINT_DIR", Some(&checkpoints)),
            ("COHABIT_PROGRESS", Some(&folder.progress())),
            ("COHABIT_CODE_DIR", copy.as_ref().map(|copy| &copy.folder)),
        ];
        let paths = paths.into_iter().filter_map(|(name, path)| Some((name, path?.as_path()))).collect();
        let environment = self.environment(&rank, account.as_ref(), &paths);
        Ok(StartRecord {
            program: self.code.program_of(&rank),
            workdir: copy.map(|copy| copy.workdir),
            environment,
            orphan_grace: self.orphan_grace,
            lease_term: Some(LEASE_TERM),
            leased_at: Some(leased_at),
            log: self.log,
            booted_at: Some(clock::booted_at()),
            removal,
            account,
            cgroup,
            rank,
        })
    }

    /// What this rank finds on its standard input, if it is a part of an application.
    pub(crate) fn application_access(&self, rank: &RankStart) -> Option<ApplicationAccess> {
        let (credentials, code) = (rank.application.clone()?, rank.spec.code.clone()?);
        let place = rank.place.clone()?;
        let application = rank.code_owner();
        Some(ApplicationAccess {
            application,
            member: rank.rank,
            credentials,
            code,
            head: self.head.clone(),
            directory: self.state.code_of(application).sockets(),
            gpus: place.gpus,
            node: place.node,
            port: place.port,
            coordinator: place.coordinator,
            coordinator_node: place.coordinator_node,
        })
    }

    /// With variables for these paths, which a container is shown as well. Later variables replace earlier
    /// ones of the same name.
    fn environment(
        &self,
        rank: &RankStart,
        account: Option<&Account>,
        paths: &BTreeMap<&str, &Path>,
    ) -> BTreeMap<String, String> {
        let mut environment = self.login_variables.clone();
        if let Some(account) = account {
            environment.retain(|name, _| name != TEMPORARY_DIRECTORY);
            environment.extend(account.environment());
        }
        environment.extend(rank.spec.environment.clone());
        let of_rank = rank.environment.iter().map(|(name, value)| (name.to_string(), value.clone()));
        environment.extend(of_rank);
        let of_gpus = self.gpus.environment(&rank.devices, rank.access);
        if !of_gpus.is_empty() {
            environment.retain(|name, _| !name.starts_with(MPS_PREFIX));
        }
        environment.extend(slurm_gpus(rank, &of_gpus));
        environment.extend(of_gpus);
        environment.extend(self.gpus.framework_memory(rank));
        environment.extend(stop_at(rank));
        let texts =
            paths.iter().map(|(name, path)| ((*name).to_owned(), path.to_string_lossy().into_owned()));
        environment.extend(texts);
        let paths: Vec<&Path> = paths.values().copied().collect();
        let of_container = self.gpus.container_environment(rank, &environment, &paths);
        environment.extend(of_container);
        environment
    }
}

/// The GPUs of a rank under Slurm's name, as `CUDA_VISIBLE_DEVICES` has them.
fn slurm_gpus(rank: &RankStart, of_gpus: &BTreeMap<String, String>) -> Option<(String, String)> {
    let visible = of_gpus.get("CUDA_VISIBLE_DEVICES").filter(|visible| !visible.is_empty())?;
    rank.spec.slurm_environment.then(|| ("SLURM_JOB_GPUS".to_owned(), visible.clone()))
}

/// The end of the time limit in seconds since 1970, by the wall clock. The process itself starts a little
/// later.
fn stop_at(rank: &RankStart) -> BTreeMap<String, String> {
    let Some(limit) = rank.spec.time_limit else { return BTreeMap::new() };
    let at = ((clock::wall_clock() + limit).as_micros() / 1_000_000).to_string();
    let names = ["COHABIT_STOP_AT"].into_iter();
    let names = names.chain(rank.spec.slurm_environment.then_some("SLURM_JOB_END_TIME"));
    names.map(|name| (name.to_owned(), at.clone())).collect()
}

fn login_variables(look: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let known = LOGIN_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), look(name)?)));
    let mut login_variables: BTreeMap<String, String> = known.collect();
    login_variables.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    login_variables
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Bytes, Device, DeviceId, DeviceKind, JobId, JobSpec, Role, Share};
    use cohabit_worker_core::{GpuAccess, MpsLimits};

    use super::*;
    use crate::devices::DeviceIds;
    use crate::executor_program::ExecutorProgram;
    use crate::gpu::GpuNumbers;

    fn rank(spec: JobSpec, devices: &[&str]) -> RankStart {
        RankStart {
            rank: JobId::new(12).attempt(1).rank(0),
            spec: spec.into(),
            user: "ada".into(),
            account: "ada".into(),
            role: Role::User,
            private_uid: None,
            devices: devices.iter().map(|id| DeviceId((*id).into())).collect(),
            share: Share::WHOLE,
            access: GpuAccess::None,
            rendezvous_port: None,
            application: None,
            place: None,
            node_rank: 0,
            checkpoints: None,
            note: None,
            idle_after: None,
            environment: BTreeMap::from([("COHABIT_JOB_ID".into(), "12".into())]),
        }
    }

    /// A worker with a state directory of its own, which exists as long as the first of the pair.
    fn rank_context(gpus: &[&str]) -> (tempfile::TempDir, RankContext) {
        let folder = tempfile::tempdir().unwrap();
        let gpu = |id: &&str| Device::new(DeviceId((*id).into()), DeviceKind::Gpu, "H200", None);
        let gpus: Vec<Device> = gpus.iter().map(gpu).collect();
        let numbers = GpuNumbers::new(&gpus, true, false, DeviceIds::Uuid);
        let state = StateDirectory::open(folder.path()).unwrap().0;
        let rank_context = RankContext {
            isolation: Isolator::none(),
            acknowledgements: Acknowledgements::start(tokio::sync::mpsc::unbounded_channel().0),
            executors: ExecutorPool::new(ExecutorProgram::At("/bin/true".into()), folder.path().to_owned()),
            orphan_grace: Span::from_secs(1),
            log: LogLimits::default(),
            head: "127.0.0.1:7070".into(),
            login_variables: login_variables(|name| {
                (name == "HOME" || name == "SECRET").then(|| "/home/ada".into())
            }),
            nvml_library: None,
            gpus: MpsDirectories::create(folder.path(), &gpus, numbers, "").unwrap().into(),
            code: CodeCopies::open(&state).unwrap().into(),
            state,
        };
        (folder, rank_context)
    }

    fn sleeper() -> JobSpec {
        JobSpec::command(vec!["sleep".into()], "/".into())
    }

    #[tokio::test]
    async fn only_basic_variables_of_the_daemon_are_inherited() {
        let (_folder, rank_context) = rank_context(&[]);
        let start = rank_context.prepare(rank(sleeper(), &["host-0"]), None, Time::EPOCH).unwrap();
        let names: Vec<&str> = start.environment.keys().map(String::as_str).collect();
        let expected = ["COHABIT_CHECKPOINT_DIR", "COHABIT_JOB_ID", "COHABIT_PROGRESS", "HOME", "PATH"];
        assert_eq!(names, expected);
        assert_eq!(start.environment["PATH"], DEFAULT_PATH);
        assert!(start.environment["COHABIT_PROGRESS"].ends_with("/ranks/12/1/0/progress"));
    }

    #[tokio::test]
    async fn a_job_may_change_basic_variables_but_not_those_of_cohabit() {
        let (_folder, rank_context) = rank_context(&[]);
        let mut spec = sleeper();
        let asked = [("HOME", "/else"), ("COHABIT_JOB_ID", "13")];
        spec.environment = asked.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let environment = rank_context.prepare(rank(spec, &[]), None, Time::EPOCH).unwrap().environment;
        assert_eq!((environment["HOME"].as_str(), environment["COHABIT_JOB_ID"].as_str()), ("/else", "12"));
    }

    #[tokio::test]
    async fn a_job_with_a_time_limit_gets_its_end_time() {
        let (_folder, rank_context) = rank_context(&[]);
        let spec = JobSpec { time_limit: Some(Span::from_secs(1_000)), slurm_environment: true, ..sleeper() };
        let begin = clock::wall_clock().as_micros() / 1_000_000;
        let environment = rank_context.prepare(rank(spec, &[]), None, Time::EPOCH).unwrap().environment;
        let deadlines =
            ["COHABIT_STOP_AT", "SLURM_JOB_END_TIME"].map(|name| environment[name].parse::<u64>().unwrap());
        assert!(deadlines[0] == deadlines[1] && deadlines[0] >= begin + 1_000, "{deadlines:?} of {begin}");
    }

    #[tokio::test]
    async fn a_rank_sees_its_own_gpus_and_no_others() {
        let (_folder, rank_context) = rank_context(&["GPU-a", "GPU-b"]);
        let seen = |devices: &[&str]| {
            rank_context.prepare(rank(sleeper(), devices), None, Time::EPOCH).unwrap().environment["CUDA_VISIBLE_DEVICES"]
                .clone()
        };
        assert_eq!(seen(&["GPU-b", "GPU-a"]), "GPU-b,GPU-a");
        assert_eq!(seen(&[]), "");
    }

    #[tokio::test]
    async fn a_job_of_slurm_gets_its_gpus_under_the_name_of_slurm() {
        let (_folder, rank_context) = rank_context(&["GPU-a", "GPU-b"]);
        let gpus = |slurm_environment, devices: &[&str]| {
            let rank = rank(JobSpec { slurm_environment, ..sleeper() }, devices);
            rank_context.prepare(rank, None, Time::EPOCH).unwrap().environment.remove("SLURM_JOB_GPUS")
        };
        assert_eq!(gpus(true, &["GPU-b"]).as_deref(), Some("GPU-b"));
        assert_eq!((gpus(true, &[]), gpus(false, &["GPU-b"])), (None, None));
    }

    #[tokio::test]
    async fn every_rank_uses_the_mps_daemon_of_its_gpu_or_none() {
        let (_folder, rank_context) = rank_context(&["GPU-a", "GPU-b"]);
        let environment = |access, devices: &[&str]| {
            let asked = ["CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"];
            let environment = asked.map(|name| (name.to_owned(), "/tmp/nvidia-mps".to_owned())).into();
            let rank = rank(JobSpec { environment, ..sleeper() }, devices);
            rank_context.prepare(RankStart { access, ..rank }, None, Time::EPOCH).unwrap().environment
        };
        let limits = MpsLimits { memory: Bytes(2 << 30), percentage: None };
        let client = environment(GpuAccess::Mps(limits), &["GPU-b"]);
        let directories: BTreeMap<_, _> = rank_context.gpus.iter().collect();
        let directory = directories[&DeviceId("GPU-b".into())];
        assert_eq!(Path::new(&client["CUDA_MPS_PIPE_DIRECTORY"]), directory.pipe());
        assert_eq!(
            (&*client["CUDA_VISIBLE_DEVICES"], &*client["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"]),
            ("GPU-b", "0=2048M")
        );
        for access in [GpuAccess::Exclusive, GpuAccess::TimeSliced(Bytes(1)), GpuAccess::None] {
            let other = environment(access, &["GPU-a"]);
            assert!(other["CUDA_MPS_PIPE_DIRECTORY"].ends_with("/n"), "{access:?}");
            assert!(!other.contains_key("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "{access:?}");
        }
        assert!(!client.contains_key("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
    }

    #[tokio::test]
    async fn checkpoints_go_to_the_directory_of_the_job() {
        let (folder, rank_context) = rank_context(&[]);
        let elsewhere = folder.path().join("else/where").to_str().unwrap().to_owned();
        let spec = JobSpec { checkpoint: Some(elsewhere.clone()), ..sleeper() };
        let start = rank_context.prepare(rank(spec, &[]), None, Time::EPOCH).unwrap();
        assert_eq!(start.environment["COHABIT_CHECKPOINT_DIR"], elsewhere);
        assert!(!Path::new(&elsewhere).exists(), "the executor creates it");
    }
}

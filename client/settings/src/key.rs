//! The keys of settings: each has one name for files, environment variables and flags.

use std::collections::BTreeMap;

/// The settings of one source, as text.
pub type RawSettings = BTreeMap<SettingKey, String>;

/// Declares the keys once: variant, name and documentation.
macro_rules! setting_keys {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The key of a setting.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum SettingKey {
            $($(#[$doc])* $variant,)*
        }

        impl SettingKey {
            /// Every key.
            pub const ALL: &[SettingKey] = &[$(SettingKey::$variant,)*];

            /// The name in files and flags.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(SettingKey::$variant => $name,)*
                }
            }
        }
    };
}

setting_keys! {
    /// Address of the head, for clients.
    Head = "head",
    /// File with the token of a client or worker.
    TokenFile = "token-file",
    /// State directory.
    State = "state",
    /// Whether jobs run in a copy of their code as it is at submission.
    Snapshot = "snapshot",
    /// Address that the head listens on.
    Listen = "listen",
    /// Scheduling policy of the head.
    Policy = "policy",
    /// Source of predicted slowdowns.
    Interference = "interference",
    /// Tables of how much cores and host memory speed jobs up.
    Sensitivity = "sensitivity",
    /// Trained agents of the policy maifs.
    Agents = "agents",
    /// Largest slowdown that sharing a GPU may cause.
    MaxSlowdown = "max-slowdown",
    /// Time after which jobs on an unreachable node are declared lost.
    LostAfter = "lost-after",
    /// Directory for checkpoints that all nodes share.
    CheckpointDir = "checkpoint-dir",
    /// Largest size of the checkpoints of a job that are carried to another node.
    CheckpointLimit = "checkpoint-limit",
    /// How long ended jobs may be named, depended on and queued again.
    Retention = "retention",
    /// How long ended jobs stay in memory before they go to disk.
    ArchiveAfter = "archive-after",
    /// How long the history keeps ended jobs.
    HistoryRetention = "history-retention",
    /// How long the sums of each day are kept for reports.
    ReportRetention = "report-retention",
    /// Largest number of members of an array.
    MaxArrayMembers = "max-array-members",
    /// Largest number of jobs on which one job depends.
    MaxDependencies = "max-dependencies",
    /// Largest size of one job.
    MaxJobSize = "max-job-size",
    /// Longest grace period of a job.
    MaxGrace = "max-grace",
    /// Highest priority that a user may give.
    MaxUserPriority = "max-user-priority",
    /// Largest number of submissions of one user in a second.
    MaxSubmitsPerSecond = "max-submits-per-second",
    /// Largest number of jobs that one user changes in a second.
    MaxChangesPerSecond = "max-changes-per-second",
    /// Largest number of waiting jobs of one user.
    MaxQueuedJobs = "max-queued-jobs",
    /// Largest number of running jobs of one user.
    MaxRunningJobs = "max-running-jobs",
    /// Whether users take turns by what they are entitled to.
    FairShare = "fair-share",
    /// After how long an interactive job that does nothing gives its place to jobs that wait.
    IdleStop = "idle-stop",
    /// Largest size of all jobs of one user.
    MaxUserSize = "max-user-size",
    /// Largest size of one code snapshot.
    MaxSnapshotSize = "max-snapshot-size",
    /// Largest size of the stored code of one user.
    MaxUserCode = "max-user-code",
    /// Whether users see the particulars of each other's jobs.
    PrivateData = "private-data",
    /// How long new tokens of users are valid.
    TokenLifetime = "token-lifetime",
    /// How often a job may lose its node.
    NodeFailures = "node-failures",
    /// Address of the head, for workers.
    Join = "join",
    /// Name of a node.
    Name = "name",
    /// Devices that a worker offers.
    Devices = "devices",
    /// Largest number of ranks that share a GPU.
    MaxSharing = "max-sharing",
    /// Largest number of jobs that run on a node at once.
    MaxJobs = "max-jobs",
    /// Memory to keep free on a shared GPU.
    GpuReserve = "gpu-reserve",
    /// Whether MPS enforces shares.
    Mps = "mps",
    /// How jobs find their GPUs.
    DeviceIds = "device-ids",
    /// Path of NVIDIA's management library.
    NvmlLibrary = "nvml-library",
    /// Network bandwidth of a worker.
    Network = "network",
    /// Bandwidth between the devices of a worker.
    Interconnect = "interconnect",
    /// Whether a worker that runs as root refuses to run jobs as root.
    NoRootJobs = "no-root-jobs",
    /// Least user id as which a worker that runs as root runs jobs.
    MinUid = "min-uid",
    /// Whether a worker that does not run as root runs the jobs of all users as its own account.
    AllowSharedAccount = "allow-shared-account",
    /// Whether no application may listen at a port of the node.
    NoApplicationPorts = "no-application-ports",
    /// How long ranks keep running without the head.
    OrphanGrace = "orphan-grace",
    /// Largest size of the output that is kept of a rank.
    LogLimit = "log-limit",
    /// How long output is kept.
    LogRetention = "log-retention",
    /// Largest size of the output of all ended ranks that is kept.
    LogTotal = "log-total",
    /// Largest number of ended ranks whose output is kept.
    LogRanks = "log-ranks",
    /// Log level or filter of daemons.
    LogLevel = "log-level",
    /// Log format of daemons.
    LogFormat = "log-format",
}

impl SettingKey {
    /// The name of the environment variable.
    #[must_use]
    pub fn variable(self) -> String {
        if self == SettingKey::LogLevel {
            return "COHABIT_LOG".to_owned();
        }
        // Each job has a variable of the plain name, and may start a head.
        if self == SettingKey::CheckpointDir {
            return "COHABIT_SHARED_CHECKPOINT_DIR".to_owned();
        }
        format!("COHABIT_{}", self.name().to_ascii_uppercase().replace('-', "_"))
    }

    /// The key with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<SettingKey> {
        SettingKey::ALL.iter().copied().find(|key| key.name() == name)
    }
}

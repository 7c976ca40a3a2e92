//! The keys of settings: one name for each, in files, variables and flags alike.

/// A setting's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Where clients find the head.
    Head,
    /// The token of clients and workers.
    TokenFile,
    /// The state folder.
    State,
    /// Where the head listens.
    Listen,
    /// The head's policy.
    Policy,
    /// What the head goes by when jobs share GPUs.
    Interference,
    /// How much neighbours may slow down a job.
    MaxSlowdown,
    /// How long a node may be unreachable.
    LostAfter,
    /// How long ended jobs stay in memory.
    Retention,
    /// How long the history keeps ended jobs.
    HistoryRetention,
    /// How often a job may lose its node.
    NodeFailures,
    /// Where a worker finds the head.
    Join,
    /// A node's name.
    Name,
    /// What a worker offers.
    Devices,
    /// How many ranks may share a GPU.
    MaxSharing,
    /// Memory that ranks which share a GPU leave free.
    GpuReserve,
    /// Whether shares are enforced under MPS.
    Mps,
    /// NVIDIA's management library.
    NvmlLibrary,
    /// How fast a worker's network is.
    Network,
    /// How fast a worker's devices reach each other.
    Interconnect,
    /// Whether a worker that is root runs no jobs as root.
    NoRootJobs,
    /// How long ranks go on without the head.
    OrphanGrace,
    /// How much of a rank's output is kept.
    LogLimit,
    /// How long output is kept.
    LogRetention,
    /// What daemons log.
    LogLevel,
    /// How daemons log.
    LogFormat,
}

impl Key {
    /// Every key.
    pub(crate) const ALL: [Key; 26] = [
        Key::Head,
        Key::TokenFile,
        Key::State,
        Key::Listen,
        Key::Policy,
        Key::Interference,
        Key::MaxSlowdown,
        Key::LostAfter,
        Key::Retention,
        Key::HistoryRetention,
        Key::NodeFailures,
        Key::Join,
        Key::Name,
        Key::Devices,
        Key::MaxSharing,
        Key::GpuReserve,
        Key::Mps,
        Key::NvmlLibrary,
        Key::Network,
        Key::Interconnect,
        Key::NoRootJobs,
        Key::OrphanGrace,
        Key::LogLimit,
        Key::LogRetention,
        Key::LogLevel,
        Key::LogFormat,
    ];

    /// The name in files, and after `--`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Key::Head => "head",
            Key::TokenFile => "token-file",
            Key::State => "state",
            Key::Listen => "listen",
            Key::Policy => "policy",
            Key::Interference => "interference",
            Key::MaxSlowdown => "max-slowdown",
            Key::LostAfter => "lost-after",
            Key::Retention => "retention",
            Key::HistoryRetention => "history-retention",
            Key::NodeFailures => "node-failures",
            Key::Join => "join",
            Key::Name => "name",
            Key::Devices => "devices",
            Key::MaxSharing => "max-sharing",
            Key::GpuReserve => "gpu-reserve",
            Key::Mps => "mps",
            Key::NvmlLibrary => "nvml-library",
            Key::Network => "network",
            Key::Interconnect => "interconnect",
            Key::NoRootJobs => "no-root-jobs",
            Key::OrphanGrace => "orphan-grace",
            Key::LogLimit => "log-limit",
            Key::LogRetention => "log-retention",
            Key::LogLevel => "log-level",
            Key::LogFormat => "log-format",
        }
    }

    /// The name of the variable.
    pub(crate) fn variable(self) -> String {
        if self == Key::LogLevel {
            return "COHABIT_LOG".to_owned();
        }
        format!("COHABIT_{}", self.name().to_ascii_uppercase().replace('-', "_"))
    }

    /// The key with this name.
    pub(crate) fn by_name(name: &str) -> Option<Key> {
        Key::ALL.into_iter().find(|key| key.name() == name)
    }
}

//! The keys of settings: one name for each, in files, variables and flags alike.

use std::collections::BTreeMap;

/// The settings of one source, as text.
pub(crate) type RawSettings = BTreeMap<SettingKey, String>;

/// A setting's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingKey {
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

impl SettingKey {
    /// Every key.
    pub(crate) const ALL: [SettingKey; 26] = [
        SettingKey::Head,
        SettingKey::TokenFile,
        SettingKey::State,
        SettingKey::Listen,
        SettingKey::Policy,
        SettingKey::Interference,
        SettingKey::MaxSlowdown,
        SettingKey::LostAfter,
        SettingKey::Retention,
        SettingKey::HistoryRetention,
        SettingKey::NodeFailures,
        SettingKey::Join,
        SettingKey::Name,
        SettingKey::Devices,
        SettingKey::MaxSharing,
        SettingKey::GpuReserve,
        SettingKey::Mps,
        SettingKey::NvmlLibrary,
        SettingKey::Network,
        SettingKey::Interconnect,
        SettingKey::NoRootJobs,
        SettingKey::OrphanGrace,
        SettingKey::LogLimit,
        SettingKey::LogRetention,
        SettingKey::LogLevel,
        SettingKey::LogFormat,
    ];

    /// The name in files, and after `--`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            SettingKey::Head => "head",
            SettingKey::TokenFile => "token-file",
            SettingKey::State => "state",
            SettingKey::Listen => "listen",
            SettingKey::Policy => "policy",
            SettingKey::Interference => "interference",
            SettingKey::MaxSlowdown => "max-slowdown",
            SettingKey::LostAfter => "lost-after",
            SettingKey::Retention => "retention",
            SettingKey::HistoryRetention => "history-retention",
            SettingKey::NodeFailures => "node-failures",
            SettingKey::Join => "join",
            SettingKey::Name => "name",
            SettingKey::Devices => "devices",
            SettingKey::MaxSharing => "max-sharing",
            SettingKey::GpuReserve => "gpu-reserve",
            SettingKey::Mps => "mps",
            SettingKey::NvmlLibrary => "nvml-library",
            SettingKey::Network => "network",
            SettingKey::Interconnect => "interconnect",
            SettingKey::NoRootJobs => "no-root-jobs",
            SettingKey::OrphanGrace => "orphan-grace",
            SettingKey::LogLimit => "log-limit",
            SettingKey::LogRetention => "log-retention",
            SettingKey::LogLevel => "log-level",
            SettingKey::LogFormat => "log-format",
        }
    }

    /// The name of the variable.
    pub(crate) fn variable(self) -> String {
        if self == SettingKey::LogLevel {
            return "COHABIT_LOG".to_owned();
        }
        format!("COHABIT_{}", self.name().to_ascii_uppercase().replace('-', "_"))
    }

    /// The key with this name.
    pub(crate) fn by_name(name: &str) -> Option<SettingKey> {
        SettingKey::ALL.into_iter().find(|key| key.name() == name)
    }
}

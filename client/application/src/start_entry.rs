//! What the attribute of `main` says.

/// What the attribute of `main` says.
#[derive(Debug, Clone, Copy)]
pub struct MainEntry {
    /// The name of the application.
    pub name: &'static str,
    /// How many GPUs it may use.
    pub max_gpus: Option<u32>,
    /// How much memory its objects may have on a node, in bytes.
    pub object_memory: u64,
}

/// What objects may have if nothing else is said.
pub const DEFAULT_OBJECT_MEMORY: u64 = 1 << 30;

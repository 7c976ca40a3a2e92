//! What the attribute of `main` says.

/// What the attribute of `main` says.
#[derive(Debug, Clone, Copy)]
pub struct MainEntry {
    /// The name of the application.
    pub name: &'static str,
    /// How many GPUs it may use.
    pub max_gpus: Option<u32>,
}

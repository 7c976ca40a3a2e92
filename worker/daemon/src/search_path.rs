//! Where programs are looked for.

/// The search path if the daemon has none.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Where this process, and with it a rank, looks for programs.
pub(crate) fn search_path() -> String {
    std::env::var("PATH").unwrap_or_else(|_| DEFAULT_PATH.into())
}

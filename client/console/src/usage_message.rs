//! Errors of clap in one line.

/// The error and its tips, without the heading, the usage and the pointer to --help.
pub fn usage_message(error: &clap::Error) -> String {
    let text = error.to_string();
    let body = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = body.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let kept = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    kept.collect::<Vec<_>>().join("; ")
}

//! What the reader of the command line says about words that make no sense, in one line.

/// The complaint and its tips, without the heading, the usage and the pointer to help.
pub(crate) fn usage_message(error: &clap::Error) -> String {
    let text = error.to_string();
    let told = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = told.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let worth = lines.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    worth.collect::<Vec<_>>().join("; ")
}

//! `--stop-signal`: the signal that announces a stop, and how long before SIGTERM it is sent.

use cohabit_client::types::{Signal, Span, WarningSignal};
use cohabit_console::duration::parse_duration;

/// As in Slurm, a signal without a time is sent a minute before.
const DEFAULT_WARNING: Span = Span::from_secs(60);

/// Parses `SIGUSR1@60s` or `USR1`.
pub fn parse_stop_signal(text: &str) -> Result<WarningSignal, String> {
    let (name, before) = match text.split_once('@') {
        Some((name, before)) => (name, parse_duration(before)?),
        None => (text, DEFAULT_WARNING),
    };
    let signal = Signal::by_name(name)
        .ok_or_else(|| format!("'{name}' is not a signal: write for example SIGUSR1@60s or 10@60s"))?;
    Ok(WarningSignal { signal, before })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_and_its_time_are_parsed() {
        let read = |text: &str| parse_stop_signal(text).map(|warning| (warning.signal, warning.before));
        assert_eq!(read("SIGUSR1@90s"), Ok((Signal::USR1, Span::from_secs(90))));
        assert_eq!(read("term"), Ok((Signal::TERM, Span::from_secs(60))));
        assert!(parse_stop_signal("SIGNOPE@1s").unwrap_err().contains("not a signal"));
        assert!(parse_stop_signal("USR1@60").unwrap_err().contains("has no unit"));
    }
}

//! Lengths of time as people write them: `2h`, `90s`, `1h30m`, `02:00:00`, `1-12:00:00`.

use cohabit_types::Span;

/// Reads a length of time. A number needs a unit or colons, so that nobody takes minutes for seconds.
pub fn span(text: &str) -> Result<Span, String> {
    let refuse = || format!("'{text}' is no length of time: write it like 2h, 90s, 02:00:00 or 1-12:00:00");
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text != "0" {
        return Err(format!("'{text}' has no unit: write {text}s for seconds or {text}m for minutes"));
    }
    match clock_seconds(text) {
        Some(seconds) => Ok(Span::from_secs(seconds)),
        None => humantime::parse_duration(text).map(Span::from).map_err(|_| refuse()),
    }
}

/// `HH:MM:SS`, `D-HH`, `D-HH:MM` and `D-HH:MM:SS` in seconds. `MM:SS` is left out: it looks like `HH:MM`.
fn clock_seconds(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(number(days)?), clock),
        None => (None, text),
    };
    let parts = clock.split(':').map(number).collect::<Option<Vec<u64>>>()?;
    let [hours, minutes, seconds] = match (days, parts.as_slice()) {
        (_, &[hours, minutes, seconds]) => [hours, minutes, seconds],
        (Some(_), &[hours, minutes]) => [hours, minutes, 0],
        (Some(_), &[hours]) => [hours, 0, 0],
        _ => return None,
    };
    in_seconds(days.unwrap_or(0), hours, minutes, seconds)
}

/// Days, hours, minutes and seconds together, unless they are too many to count.
pub fn in_seconds(days: u64, hours: u64, minutes: u64, seconds: u64) -> Option<u64> {
    let hours = days.checked_mul(24)?.checked_add(hours)?;
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    minutes.checked_mul(60)?.checked_add(seconds)
}

fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let seconds = |text: &str| span(text).map(|span| span.as_micros() / 1_000_000);
        assert_eq!(seconds("2h"), Ok(7_200));
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("1h30m"), Ok(5_400));
        assert_eq!(seconds("02:00:00"), Ok(7_200));
        assert_eq!(seconds("1-12:00:00"), Ok(129_600));
        assert_eq!(seconds("2-1"), Ok(176_400));
        assert_eq!(seconds("0"), Ok(0));
    }

    #[test]
    fn a_bare_number_is_refused_with_both_readings() {
        assert_eq!(span("90").unwrap_err(), "'90' has no unit: write 90s for seconds or 90m for minutes");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for bad in ["", "02:00", "1-", "-5s", "1:2:3:4", "x", "99999999999999999999s", "1-2-3"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }
}

//! Parses durations: `2h`, `90s`, `1h30m`, `02:00:00`, `1-12:00:00`.

use cohabit_types::Span;

/// Parses a duration. A number needs a unit or colons, so that minutes are not mistaken for seconds.
///
/// # Errors
///
/// A sentence that says how to write the duration.
pub fn parse_duration(text: &str) -> Result<Span, String> {
    let refuse = || format!("'{text}' is not a duration: write for example 2h, 90s, 02:00:00 or 1-12:00:00");
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text != "0" {
        return Err(format!("'{text}' has no unit: write {text}s for seconds or {text}m for minutes"));
    }
    match clock_seconds(text) {
        Some(seconds) => Ok(Span::from_secs(seconds)),
        None => humantime::parse_duration(text).map(Span::from).map_err(|_| refuse()),
    }
}

/// `HH:MM:SS`, `D-HH`, `D-HH:MM` and `D-HH:MM:SS` in seconds. `MM:SS` is not supported: it looks like
/// `HH:MM`.
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
    total_seconds(days.unwrap_or(0), hours, minutes, seconds)
}

/// The sum in seconds; none if it overflows.
pub fn total_seconds(days: u64, hours: u64, minutes: u64, seconds: u64) -> Option<u64> {
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
    fn every_form_is_parsed() {
        let seconds = |text: &str| parse_duration(text).map(|span| span.as_micros() / 1_000_000);
        assert_eq!(seconds("2h"), Ok(7_200));
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("1h30m"), Ok(5_400));
        assert_eq!(seconds("02:00:00"), Ok(7_200));
        assert_eq!(seconds("1-12:00:00"), Ok(129_600));
        assert_eq!(seconds("2-1"), Ok(176_400));
        assert_eq!(seconds("0"), Ok(0));
    }

    #[test]
    fn the_error_of_a_bare_number_names_both_units() {
        assert_eq!(
            parse_duration("90").unwrap_err(),
            "'90' has no unit: write 90s for seconds or 90m for minutes"
        );
    }

    #[test]
    fn ambiguous_forms_are_errors() {
        for bad in ["", "02:00", "1-", "-5s", "1:2:3:4", "x", "99999999999999999999s", "1-2-3"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}

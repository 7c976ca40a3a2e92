//! Parses dates with a time of day as clocks show them: `2017-09-04 10:30:41`.
//!
//! Traces do not state the time zone, so there is none: a change to summer time shifts what follows by an
//! hour.

/// Seconds from 1970-01-01 00:00:00 to this date on the same clock.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let [year, month, day] = numbers(date, '-')?;
    let time = time.split_once('.').map_or(time, |(whole, _)| whole);
    let [hour, minute, second] = numbers(time, ':')?;
    let is_real = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(month, year)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    is_real.then(|| days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<u64> =
        text.split(between).map(|part| Some(part).filter(is_number)?.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in(month: u64, year: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let years = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 });
    years.sum::<u64>() + (1..month).map(|month| days_in(month, year)).sum::<u64>() + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        assert_eq!(seconds("1970-01-01 00:00:00"), Some(0));
        assert_eq!(seconds("2000-03-01 00:00:00"), Some(951_868_800));
        assert_eq!(seconds("2017-09-04 10:30:41"), Some(1_504_521_041));
        assert_eq!(seconds("2024-12-31T23:59:59.5"), Some(1_735_689_599));
    }

    #[test]
    fn invalid_dates_are_refused() {
        for bad in [
            "",
            "2017-09-04",
            "2017-02-29 00:00:00",
            "2017-13-01 00:00:00",
            "2017-09-04 24:00:00",
            "2017-09-04 10:30",
            "2017--9-04 10:30:00",
            "+2017-09-04 10:30:00",
            "1969-12-31 23:59:59",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        assert!(seconds("2016-02-29 00:00:00").is_some());
    }
}

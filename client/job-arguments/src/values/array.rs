//! `--array`: the indices of an array and how many members may run at once.

use cohabit_client::types::{Array, IndexRange};

/// Parses `1-100%4`, `0-9:3,12`, `7`.
pub fn parse_array(text: &str) -> Result<Array, String> {
    let (list, limit) = match text.split_once('%') {
        Some((list, limit)) => (list, Some(number(limit).ok_or_else(|| refusal(text))?)),
        None => (text, None),
    };
    let ranges = list.split(',').map(|range| self::range(range, text)).collect::<Result<_, _>>()?;
    Ok(Array { ranges, at_once: limit })
}

fn range(part: &str, whole: &str) -> Result<IndexRange, String> {
    let (bounds, step) = match part.split_once(':') {
        Some((bounds, step)) => (bounds, number(step)),
        None => (part, Some(1)),
    };
    let (first, last) = bounds.split_once('-').unwrap_or((bounds, bounds));
    let (Some(first), Some(last), Some(step)) = (number(first), number(last), step) else {
        return Err(refusal(whole));
    };
    if step == 0 {
        return Err(format!("'{part}' has a step of 0: the step must be at least 1"));
    }
    if last < first {
        return Err(format!(
            "'{part}' has no members, because {last} is less than {first}: write {last}-{first}"
        ));
    }
    Ok(IndexRange { first, last, step })
}

fn refusal(text: &str) -> String {
    format!(
        "'{text}' is not a list of indices: write for example 1-100, 0-9:3,12 or 1-100%4 (at most 4 at once)"
    )
}

fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_steps_and_limits_are_read() {
        let indices = |text: &str| parse_array(text).unwrap().indices().collect::<Vec<_>>();
        assert_eq!(indices("0-9:3,12"), [0, 3, 6, 9, 12]);
        assert_eq!(indices("7"), [7]);
        let limited = parse_array("1-100%4").unwrap();
        assert_eq!((limited.len(), limited.at_once), (100, Some(4)));
    }

    #[test]
    fn a_list_without_members_is_an_error() {
        for bad in ["", ",", "1-", "-3", "a", "1-2-3", "1%", "1%x", "4294967296", "1,,2"] {
            assert!(parse_array(bad).unwrap_err().contains("not a list of indices"), "{bad}");
        }
        assert!(parse_array("5-1").unwrap_err().contains("write 1-5"));
        assert!(parse_array("0-9:0").unwrap_err().contains("step of 0"));
    }
}

//! Ranges that may change while a job runs: `--cpus 2..12`, `--mem 20G..125G`.

use std::fmt::Display;
use std::str::FromStr;

use cohabit_client::types::Bytes;

/// An amount, or the least and the most of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmountRange<T> {
    /// The least.
    pub least: T,
    /// The most, where a range was written.
    pub most: Option<T>,
}

/// Parses `4` or `2..12`.
pub fn parse_cores(text: &str) -> Result<AmountRange<u32>, String> {
    parse(text, "a number of cores (4) or a range of them (2..12)", |amount| {
        amount.parse().map_err(|_| format!("'{amount}' is not a number of cores"))
    })
}

/// Parses `64G` or `20G..125G`.
pub fn parse_memory(text: &str) -> Result<AmountRange<Bytes>, String> {
    parse(text, "an amount of memory (64G) or a range of it (20G..125G)", parse_memory_amount)
}

/// Parses `64G`. Fewer bytes than any program needs were meant as another unit.
pub fn parse_memory_amount(text: &str) -> Result<Bytes, String> {
    let amount = Bytes::from_str(text).map_err(|error| error.to_string())?;
    match amount.0 {
        1..LEAST_MEMORY => Err(format!("{text} is {amount}: write a unit, such as {text}M or {text}G")),
        _ => Ok(amount),
    }
}

/// Less memory is asked for by mistake only.
const LEAST_MEMORY: u64 = 1 << 20;

fn parse<T: PartialOrd + Display>(
    text: &str,
    expected: &str,
    amount: impl Fn(&str) -> Result<T, String>,
) -> Result<AmountRange<T>, String> {
    let Some((least, most)) = text.split_once("..") else {
        return Ok(AmountRange { least: amount(text)?, most: None });
    };
    if least.is_empty() || most.is_empty() {
        return Err(format!("'{text}' is not {expected}: write both ends"));
    }
    let (from, to) = (amount(least)?, amount(most)?);
    match from <= to {
        true => Ok(AmountRange { least: from, most: Some(to) }),
        false => Err(format!("the range ends below its begin: write {most}..{least}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_amount_or_both_ends_of_a_range() {
        assert_eq!(parse_cores("4"), Ok(AmountRange { least: 4, most: None }));
        assert_eq!(parse_cores("2..12"), Ok(AmountRange { least: 2, most: Some(12) }));
        let memory = AmountRange { least: Bytes(20 << 30), most: Some(Bytes(125 << 30)) };
        assert_eq!(parse_memory("20G..125G"), Ok(memory));
        assert_eq!(parse_memory_amount("20").unwrap_err(), "20 is 20 B: write a unit, such as 20M or 20G");
        assert_eq!(parse_memory_amount("0"), Ok(Bytes(0)));
    }

    #[test]
    fn a_range_that_is_none_is_refused_with_what_to_write() {
        for (text, why) in [
            ("12..2", "the range ends below its begin: write 2..12"),
            ("2..", "'2..' is not a number of cores (4) or a range of them (2..12): write both ends"),
            ("..4", "'..4' is not a number of cores (4) or a range of them (2..12): write both ends"),
            ("two", "'two' is not a number of cores"),
            ("-1..4", "'-1' is not a number of cores"),
            ("1..2..3", "'2..3' is not a number of cores"),
        ] {
            assert_eq!(parse_cores(text).unwrap_err(), why);
        }
        assert!(parse_memory("1T..1G").unwrap_err().ends_with("write 1G..1T"));
        assert!(parse_memory("much..1G").is_err());
    }
}

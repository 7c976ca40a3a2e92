//! SweepParameters as they are written in flags: `lr=0.1,0.01`, `seed=1..3`, `lr=log:1e-5..1e-1`.

use std::fmt::Display;
use std::str::FromStr;

use cohabit_client::types::is_parameter_name;
use serde_json::Map;

use super::domain::ParameterDomain;
use super::plan::SweepParameters;
use super::values::value_of;

/// The kinds of ranges that a word before the range names.
const KINDS: [&str; 3] = ["log", "linear", "int"];

/// Parses a parameter and its values: `NAME=VALUES`.
pub(crate) fn parse_parameter(text: &str) -> Result<(String, ParameterDomain), String> {
    let (name, values) = named(text)?;
    let domain = parse_domain(values).map_err(|why| format!("{name}: {why}"))?;
    Ok((name, domain))
}

/// Parses the parameters of one member: `lr=0.1,seed=1`.
pub(crate) fn parse_member(text: &str) -> Result<SweepParameters, String> {
    let mut parameters = Map::new();
    for pair in text.split(',') {
        let (name, value) = named(pair)?;
        let value = value_of(value).map_err(|why| format!("{name}: {why}"))?;
        if parameters.insert(name.clone(), value).is_some() {
            return Err(format!("'{text}' has the parameter '{name}' twice: write it once"));
        }
    }
    Ok(parameters)
}

fn named(text: &str) -> Result<(String, &str), String> {
    let Some((name, values)) = text.split_once('=') else {
        return Err(format!("'{text}' has no values: write NAME=VALUES, such as lr=0.1,0.01"));
    };
    check_name(name)?;
    Ok((name.to_owned(), values))
}

/// Refuses what cannot be written as a placeholder.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    match is_parameter_name(name) {
        true => Ok(()),
        false => Err(format!(
            "'{name}' cannot be the name of a parameter: use letters, digits, _, - and ., with a letter first"
        )),
    }
}

/// Parses values: `0.1,0.01`, `1..3`, `log:1e-5..1e-1`.
pub(crate) fn parse_domain(text: &str) -> Result<ParameterDomain, String> {
    let written = text.split_once(':').filter(|(kind, _)| KINDS.contains(kind));
    if let Some((kind, range)) = written {
        return parse_range(Some(kind), range);
    }
    // A value may contain two points, as the path ../data does; a range begins with a number.
    let is_range = text.split_once("..").is_some_and(|(first, _)| first.parse::<f64>().is_ok());
    if is_range && !text.contains(',') {
        return parse_range(None, text);
    }
    if text.is_empty() {
        return Err("there are no values: write them with commas, such as 0.1,0.01".to_owned());
    }
    text.split(',').map(value_of).collect::<Result<_, _>>().map(ParameterDomain::Values)
}

/// Parses `FIRST..LAST` or `FIRST..LAST:N`. Without a kind, ends that are whole numbers make whole numbers.
fn parse_range(kind: Option<&str>, text: &str) -> Result<ParameterDomain, String> {
    let refuse = || format!("'{text}' is not a range: write both ends, such as 1..3 or log:1e-5..1e-1");
    let (first, rest) = text.split_once("..").ok_or_else(refuse)?;
    let (last, count) = match rest.split_once(':') {
        Some((last, count)) => (last, Some(count)),
        None => (rest, None),
    };
    let whole = first.parse::<i64>().ok().zip(last.parse::<i64>().ok());
    match (kind, whole) {
        (None | Some("int"), Some((first, last))) => {
            ParameterDomain::whole(first, last, number(count, "step")?.unwrap_or(1))
        }
        (Some("int"), None) => Err(format!("'{text}' has ends that are no whole numbers: write int:1..8")),
        (kind, _) => {
            let end = |text: &str| text.parse::<f64>().map_err(|_| refuse());
            let (first, last, count) = (end(first)?, end(last)?, number(count, "number of values")?);
            match kind {
                Some("log") => ParameterDomain::log(first, last, count),
                Some(_) | None => ParameterDomain::linear(first, last, count),
            }
        }
    }
}

fn number<T: FromStr<Err: Display>>(text: Option<&str>, what: &str) -> Result<Option<T>, String> {
    let parsed = text.map(|text| text.parse().map_err(|error| format!("'{text}' is no {what}: {error}")));
    parsed.transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn values_and_ranges_are_told_apart() {
        let domain = |text| parse_parameter(text).unwrap().1;
        let values =
            |texts: &[&str]| ParameterDomain::Values(texts.iter().map(|it| value_of(it).unwrap()).collect());
        assert_eq!(domain("lr=0.1,1e-5"), values(&["0.1", "1e-5"]));
        assert_eq!(domain("net=resnet"), values(&["resnet"]));
        assert_eq!(domain("data=../a"), values(&["../a"]));
        assert_eq!(domain("data=s3://a,x=y"), values(&["s3://a", "x=y"]));
        assert_eq!(domain("seed=1..3"), ParameterDomain::Whole { first: 1, last: 3, step: 1 });
        assert_eq!(domain("seed=-4..4:2"), ParameterDomain::Whole { first: -4, last: 4, step: 2 });
        assert_eq!(domain("p=0.1..0.5"), ParameterDomain::Linear { first: 0.1, last: 0.5, count: None });
        assert_eq!(
            domain("p=linear:0..1:3"),
            ParameterDomain::Linear { first: 0.0, last: 1.0, count: Some(3) }
        );
        assert_eq!(
            domain("lr=log:1e-5..1e-1"),
            ParameterDomain::Log { first: 1e-5, last: 1e-1, count: None }
        );
    }

    #[test]
    fn what_is_no_parameter_is_refused_with_what_to_write() {
        for (text, why) in [
            ("lr", "write NAME=VALUES"),
            ("=1", "cannot be the name"),
            ("1r=1", "with a letter first"),
            ("lr=", "there are no values"),
            ("lr=1..", "write both ends"),
            ("lr=3..1", "the range is empty: write 1..3"),
            ("lr=log:0..1", "above 0 only"),
            ("lr=log:1", "write both ends"),
            ("lr=int:0.5..2", "int:1..8"),
            ("lr=1..9:0", "at least 1"),
            ("lr=1..9:x", "'x' is no step"),
        ] {
            let refused = parse_parameter(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn a_member_has_one_value_for_each_name() {
        let member = parse_member("lr=0.1,seed=1").unwrap();
        assert_eq!(
            member.into_iter().collect::<Vec<_>>(),
            [("lr".to_owned(), value_of("0.1").unwrap()), ("seed".to_owned(), Value::from(1))]
        );
        assert!(parse_member("lr=1,lr=2").unwrap_err().contains("twice"));
        assert!(parse_member("lr=1,").unwrap_err().contains("no values"));
    }
}

//! The TOML file of a sweep: the same settings as flags give, and flags of its job.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use cohabit_client::types::SweepGoal;
use cohabit_console::CommandError;
use serde::Deserialize;
use serde_json::{Number, Value};

use super::domain::ParameterDomain;
use super::plan::SweepParameters;
use super::request::{RuleName, RuleSettings, SweepMethod, SweepSettings};
use super::values::value_of;
use super::written::{check_name, parse_domain};
use crate::job_flags::check_flags;

/// The largest file, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// What a file says.
#[derive(Debug)]
pub(crate) struct SweepFile {
    pub(crate) settings: SweepSettings,
    /// Flags of the job, which those of the command line override.
    job_flags: Vec<String>,
}

/// As it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenSweep {
    method: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<String, toml::Value>,
    #[serde(default)]
    members: Vec<BTreeMap<String, toml::Value>>,
    samples: Option<u64>,
    seed: Option<u64>,
    metric: Option<String>,
    goal: Option<SweepGoal>,
    #[serde(default)]
    early_stopping: WrittenRule,
    #[serde(default)]
    job: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenRule {
    rule: Option<RuleName>,
    grace: Option<u64>,
    eta: Option<u32>,
    rungs: Option<u32>,
    completed: Option<u32>,
}

impl SweepFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or describes no sweep: with the place.
    pub(crate) fn read(path: &Path) -> Result<SweepFile, CommandError> {
        let refuse = |why: String| CommandError::invalid(format!("{}: {}", path.display(), why.trim_end()));
        let unreadable = |error: std::io::Error| refuse(format!("cannot be read: {error}"));
        let mut text = String::new();
        let open = File::open(path).map_err(unreadable)?;
        open.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
        match text.len() as u64 {
            0..=MOST_BYTES => parse(&text).map_err(refuse),
            _ => Err(refuse(format!("is larger than {MOST_BYTES} bytes, the most that a sweep may have"))),
        }
    }
}

/// The flags of the job in the file at this path.
pub(crate) fn job_flags_of(path: &Path) -> Result<Vec<String>, CommandError> {
    SweepFile::read(path).map(|file| file.job_flags)
}

fn parse(text: &str) -> Result<SweepFile, String> {
    let written: WrittenSweep = toml::from_str(text).map_err(|error| error.to_string())?;
    let parameters = written.parameters.into_iter().map(|(name, value)| {
        check_name(&name)?;
        let domain = domain_of(value).map_err(|why| format!("{name}: {why}"))?;
        Ok((name, domain))
    });
    let parameters = parameters.collect::<Result<Vec<_>, String>>()?;
    let members = written.members.into_iter().map(member_of).collect::<Result<Vec<_>, String>>()?;
    let method = match written.method.as_deref() {
        Some(name) => SweepMethod::parse(name)?,
        None if members.is_empty() => SweepMethod::Grid,
        None => SweepMethod::List,
    };
    match (method, parameters.is_empty(), members.is_empty()) {
        (SweepMethod::List, _, true) => {
            return Err("a list has its members in tables [[members]]: add one for each".to_owned());
        }
        (SweepMethod::List, false, _) => {
            return Err("a list has members and no [parameters]: leave them out".to_owned());
        }
        (SweepMethod::Grid | SweepMethod::Random, _, false) => {
            return Err(
                "[[members]] belong to method = \"list\": leave them out, or change the method".to_owned()
            );
        }
        (SweepMethod::Grid | SweepMethod::Random, true, _) => {
            return Err(
                "there are no parameters: add [parameters] with a line such as lr = [0.1, 0.01]".to_owned()
            );
        }
        (SweepMethod::List, true, false) | (SweepMethod::Grid | SweepMethod::Random, false, true) => {}
    }
    let WrittenRule { rule, grace, eta, rungs, completed } = written.early_stopping;
    let settings = SweepSettings {
        method: Some(method),
        parameters,
        members,
        samples: written.samples,
        seed: written.seed,
        metric: written.metric,
        goal: written.goal,
        rule: RuleSettings { rule, grace, eta, rungs, completed },
    };
    Ok(SweepFile { settings, job_flags: job_flags(written.job)? })
}

/// A list of values, one value, or the text of a range as in flags.
fn domain_of(value: toml::Value) -> Result<ParameterDomain, String> {
    if let Some(text) = value.as_str() {
        return parse_domain(text);
    }
    match all_of(&value) {
        values if values.is_empty() => Err("the list is empty: give a value".to_owned()),
        values => values.into_iter().map(scalar).collect::<Result<_, _>>().map(ParameterDomain::Values),
    }
}

/// The elements of a list, or the one value.
fn all_of(value: &toml::Value) -> Vec<toml::Value> {
    value.as_array().cloned().unwrap_or_else(|| vec![value.clone()])
}

fn member_of(written: BTreeMap<String, toml::Value>) -> Result<SweepParameters, String> {
    let pairs = written.into_iter().map(|(name, value)| {
        check_name(&name)?;
        let value = scalar(value).map_err(|why| format!("{name}: {why}"))?;
        Ok((name, value))
    });
    pairs.collect()
}

fn scalar(value: toml::Value) -> Result<Value, String> {
    match value {
        toml::Value::String(text) => value_of(&text),
        toml::Value::Integer(number) => Ok(Value::from(number)),
        toml::Value::Float(number) => Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| format!("{number} is no finite number: write it as a text, \"{number}\"")),
        toml::Value::Boolean(value) => Ok(Value::Bool(value)),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
            Err("a value is a number, a text, true or false: a range is a text, such as \"log:1e-5..1e-1\""
                .to_owned())
        }
    }
}

/// The keys of `[job]` as flags: `gpus = 0.5` as `--gpus=0.5`, `exclusive = true` as `--exclusive`.
fn job_flags(job: BTreeMap<String, toml::Value>) -> Result<Vec<String>, String> {
    let mut flags = Vec::new();
    for (name, value) in job {
        for value in all_of(&value) {
            match value {
                toml::Value::Boolean(true) => flags.push(format!("--{name}")),
                toml::Value::Boolean(false) => {}
                toml::Value::String(text) => flags.push(format!("--{name}={text}")),
                toml::Value::Integer(number) => flags.push(format!("--{name}={number}")),
                toml::Value::Float(number) => flags.push(format!("--{name}={number}")),
                toml::Value::Datetime(time) => flags.push(format!("--{name}={time}")),
                toml::Value::Array(_) | toml::Value::Table(_) => {
                    return Err(format!("[job] {name}: write the value of the flag --{name}"));
                }
            }
        }
    }
    check_flags(&flags).map_err(|why| format!("[job]: {why}"))?;
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        method = "random"
        samples = 20
        seed = 7
        metric = "accuracy"
        goal = "max"
        [parameters]
        lr = "log:1e-5..1e-1"
        net = ["resnet", "vgg"]
        seed = "1..3"
        amp = true
        [early-stopping]
        rule = "asha"
        grace = 100
        eta = 3
        [job]
        gpus = 0.5
        time = "2h"
        exclusive = true
        env = ["A=1", "B=2"]
        enforced = false
    "#;

    #[test]
    fn a_file_has_everything_that_flags_have() {
        let SweepFile { settings, job_flags } = parse(FILE).unwrap();
        assert_eq!(settings.method, Some(SweepMethod::Random));
        assert_eq!(
            (settings.samples, settings.seed, settings.goal),
            (Some(20), Some(7), Some(SweepGoal::Max))
        );
        let names: Vec<&str> = settings.parameters.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["amp", "lr", "net", "seed"]);
        assert_eq!(settings.parameters[0].1, ParameterDomain::Values(vec![Value::Bool(true)]));
        assert_eq!(settings.parameters[1].1, ParameterDomain::Log { first: 1e-5, last: 1e-1, count: None });
        assert_eq!(settings.rule.rule, Some(RuleName::Asha));
        assert_eq!(job_flags, ["--env=A=1", "--env=B=2", "--exclusive", "--gpus=0.5", "--time=2h"]);
    }

    #[test]
    fn a_list_has_a_table_for_each_member() {
        let file = parse("[[members]]\nlr = 0.1\nnet = 'a'\n[[members]]\nlr = 1\nnet = 'b'").unwrap();
        assert_eq!(file.settings.method, Some(SweepMethod::List));
        assert_eq!(file.settings.members.len(), 2);
    }

    #[test]
    fn what_is_no_sweep_is_refused_with_the_place() {
        for (text, why) in [
            ("method = 'gird'\n[parameters]\na = 1", "'gird' is no method: write grid, random or list"),
            ("methods = 'grid'", "unknown field `methods`"),
            ("", "there are no parameters"),
            ("[parameters]\nlr = 'log:0..1'", "lr: a log range has numbers above 0 only"),
            ("[parameters]\nlr = []", "lr: the list is empty"),
            ("[parameters]\nlr = nan", "lr: NaN is no finite number"),
            ("[parameters]\nlr = { log = [1, 2] }", "such as \"log:1e-5..1e-1\""),
            ("[parameters]\n'a b' = 1", "'a b' cannot be the name"),
            ("method = 'list'\n[parameters]\na = 1", "tables [[members]]"),
            ("goal = 'less'\n[parameters]\na = 1", "expected `min` or `max`"),
            ("[parameters]\na = 1\n[early-stopping]\nrule = 'best'", "expected `median` or `asha`"),
            ("[parameters]\na = 1\n[job]\ngpu = 1", "[job]: "),
            ("[parameters]\na = 1\n[job]\ngpus = 1.5", "ask for 0.5, 1 or 2"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let refused = SweepFile::read(&folder.path().join("no.toml")).unwrap_err().message;
        assert!(refused.contains("no.toml: cannot be read"), "{refused}");
        let binary = folder.path().join("binary.toml");
        std::fs::write(&binary, b"\xff\xfe").unwrap();
        assert!(SweepFile::read(&binary).unwrap_err().message.contains("cannot be read"));
    }
}

//! Translates the common subset of `#SBATCH` into flags of Cohabit.
//!
//! Only options with the same meaning are translated. Other options of Slurm are errors that say what to do
//! instead.

use crate::closest_name::closest_name;
use crate::values::total_seconds;

/// An option of `sbatch` that can be translated.
struct SlurmOption {
    short: &'static str,
    long: &'static str,
    meaning: Translation,
}

#[derive(Clone, Copy)]
enum Translation {
    /// A flag with the same value.
    Same(&'static str),
    /// Flags that depend on the value.
    Value(fn(&str) -> Result<Vec<String>, String>),
    /// A flag without a value.
    Switch(&'static str),
}

const fn slurm_option(short: &'static str, long: &'static str, meaning: Translation) -> SlurmOption {
    SlurmOption { short, long, meaning }
}

const SLURM_OPTIONS: [SlurmOption; 16] = [
    slurm_option("-J", "--job-name", Translation::Same("--name")),
    slurm_option("-t", "--time", Translation::Value(time)),
    slurm_option("-c", "--cpus-per-task", Translation::Same("--cpus")),
    slurm_option("", "--mem", Translation::Value(memory)),
    slurm_option("", "--gres", Translation::Value(generic_resource)),
    slurm_option("-G", "--gpus", Translation::Value(|value| count("--gpus", value))),
    slurm_option("", "--gpus-per-node", Translation::Value(|value| count("--gpus-per-node", value))),
    slurm_option("-a", "--array", Translation::Same("--array")),
    slurm_option("-d", "--dependency", Translation::Value(dependency)),
    slurm_option("-N", "--nodes", Translation::Value(|value| count("--nodes", value))),
    slurm_option("-n", "--ntasks", Translation::Value(one_task)),
    slurm_option("", "--ntasks-per-node", Translation::Value(one_task)),
    slurm_option("-D", "--chdir", Translation::Same("--workdir")),
    slurm_option("-b", "--begin", Translation::Value(begin)),
    slurm_option("", "--signal", Translation::Value(signal)),
    slurm_option("-H", "--hold", Translation::Switch("--hold")),
];

/// Translates the words of one `#SBATCH` line.
pub(super) fn translate(words: &[String]) -> Result<Vec<String>, String> {
    let mut words = words.iter();
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        let (name, joined) = split(word)?;
        let known = find(name).ok_or_else(|| unknown(name))?;
        let mut value = || match joined {
            Some(value) => Ok(value),
            None => words.next().map(String::as_str).ok_or_else(|| format!("{name} needs a value")),
        };
        match known.meaning {
            Translation::Same(flag) => flags.extend([flag.to_owned(), value()?.to_owned()]),
            Translation::Value(flags_for) => flags.extend(flags_for(value()?)?),
            Translation::Switch(flag) => flags.push(flag.to_owned()),
        }
    }
    Ok(flags)
}

/// `--name=value`, `--name`, `-Nvalue` or `-N`.
fn split(word: &str) -> Result<(&str, Option<&str>), String> {
    if word.starts_with("--") {
        return Ok(word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value))));
    }
    match word.char_indices().nth(2) {
        _ if !word.starts_with('-') || word.len() < 2 => Err(format!("'{word}' is not an option of sbatch")),
        None => Ok((word, None)),
        Some((end, _)) => Ok((&word[..end], Some(&word[end..]))),
    }
}

fn find(name: &str) -> Option<&'static SlurmOption> {
    SLURM_OPTIONS.iter().find(|known| known.long == name || (known.short == name && !name.is_empty()))
}

fn unknown(name: &str) -> String {
    let advice = match name {
        "-o" | "--output" | "-e" | "--error" => {
            "the cluster keeps the output: remove the option and use `cohabit logs`"
        }
        "-p" | "--partition" | "-A" | "--account" | "-q" | "--qos" => {
            "Cohabit has no partitions or accounts: remove the option"
        }
        "--exclusive" => {
            "in Slurm it reserves whole nodes: to use GPUs without sharing them, write #COHABIT --exclusive"
        }
        "--nice" => "write #COHABIT --priority",
        _ => match closest_name(name, SLURM_OPTIONS.iter().map(|known| known.long)) {
            Some(nearest) => return format!("#SBATCH {name} is not supported; did you mean {nearest}?"),
            None => "remove it, or use #COHABIT flags instead",
        },
    };
    format!("#SBATCH {name} is not supported: {advice}")
}

/// Minutes, `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM` or `D-HH:MM:SS`.
fn time(value: &str) -> Result<Vec<String>, String> {
    let seconds = seconds(value)
        .ok_or_else(|| format!("'{value}' is not a time of Slurm: write minutes (90), 02:00:00 or 1-12"))?;
    Ok(vec!["--time".into(), format!("{seconds}s")])
}

fn seconds(value: &str) -> Option<u64> {
    let (days, clock) = value.split_once('-').map_or((None, value), |(days, clock)| (Some(days), clock));
    let numbers = clock.split(':').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let days = days.map(str::parse::<u64>).transpose().ok()?;
    match (days, numbers.as_slice()) {
        (None, &[minutes]) => total_seconds(0, 0, minutes, 0),
        (None, &[minutes, seconds]) => total_seconds(0, 0, minutes, seconds),
        (Some(days), &[hours]) => total_seconds(days, hours, 0, 0),
        (Some(days), &[hours, minutes]) => total_seconds(days, hours, minutes, 0),
        (days, &[hours, minutes, seconds]) => total_seconds(days.unwrap_or(0), hours, minutes, seconds),
        _ => None,
    }
}

/// Megabytes unless a unit is given. In Slurm, 0 means the whole node.
fn memory(value: &str) -> Result<Vec<String>, String> {
    if value == "0" {
        return Err(
            "--mem=0 reserves the memory of a whole node, which is not supported: give an amount".into()
        );
    }
    let has_unit = value.ends_with(|last: char| last.is_ascii_alphabetic());
    Ok(vec!["--mem".into(), if has_unit { value.to_owned() } else { format!("{value}M") }])
}

/// `gpu`, `gpu:2`.
fn generic_resource(value: &str) -> Result<Vec<String>, String> {
    match value.split(':').collect::<Vec<_>>().as_slice() {
        ["gpu"] => count("--gpus-per-node", "1"),
        ["gpu", number] => count("--gpus-per-node", number),
        _ => Err(format!("--gres={value} is not supported: write gpu:COUNT, without a type of GPU")),
    }
}

fn count(flag: &str, value: &str) -> Result<Vec<String>, String> {
    match value.parse::<u32>() {
        Ok(count) => Ok(vec![flag.to_owned(), count.to_string()]),
        Err(_) => Err(format!("'{value}' is not a number: types and ranges are not supported")),
    }
}

fn one_task(value: &str) -> Result<Vec<String>, String> {
    match value {
        "1" => Ok(Vec::new()),
        _ => Err(format!(
            "{value} tasks are not supported: Cohabit starts one process per node, or one per GPU with \
             #COHABIT --launch per-gpu"
        )),
    }
}

/// `afterok:12:13,afterany:14`.
fn dependency(value: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for clause in value.split(',') {
        let (when, jobs) = clause
            .split_once(':')
            .ok_or_else(|| format!("'{clause}' is not a dependency: write afterok:ID"))?;
        all.extend(jobs.split(':').map(|job| format!("{when}:{job}")));
    }
    Ok(vec!["--depends-on".into(), all.join(",")])
}

/// In Slurm, the number in `now+60` is in seconds.
fn begin(value: &str) -> Result<Vec<String>, String> {
    let is_bare =
        value.strip_prefix("now+").is_some_and(|later| later.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(vec!["--begin".into(), if is_bare { format!("{value}s") } else { value.to_owned() }])
}

/// `USR1@90`; the time is in seconds.
fn signal(value: &str) -> Result<Vec<String>, String> {
    if value.contains(':') {
        return Err(format!(
            "--signal={value} is not supported: the signal goes to all processes, so remove 'B:'"
        ));
    }
    let has_time = value.contains('@');
    Ok(vec!["--stop-signal".into(), if has_time { format!("{value}s") } else { value.to_owned() }])
}

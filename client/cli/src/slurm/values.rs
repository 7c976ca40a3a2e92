//! Values of Slurm's options: what is malformed in Slurm is an error.

use cohabit_client::types::Bytes;

use crate::values::total_seconds;

/// Minutes, `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM` or `D-HH:MM:SS`, in seconds; `None` for no limit. As in
/// Slurm, a part of a minute counts as one.
pub(super) fn time_limit(value: &str) -> Result<Option<u64>, String> {
    if ["0", "INFINITE", "UNLIMITED", "-1"].iter().any(|none| value.eq_ignore_ascii_case(none)) {
        return Ok(None);
    }
    let wrong = || format!("'{value}' is not a time of Slurm: write minutes (90), 02:00:00 or 1-12");
    let minutes = seconds(value).ok_or_else(wrong)?.div_ceil(60);
    minutes.checked_mul(60).map(Some).ok_or_else(wrong)
}

fn seconds(value: &str) -> Option<u64> {
    let (days, clock) = value.split_once('-').map_or((None, value), |(days, clock)| (Some(days), clock));
    let numbers = clock.split(':').map(number).collect::<Option<Vec<u64>>>()?;
    let days = days.map(number).map_or(Some(None), |days| days.map(Some))?;
    match (days, numbers.as_slice()) {
        (None, &[minutes]) => total_seconds(0, 0, minutes, 0),
        (None, &[minutes, seconds]) => total_seconds(0, 0, minutes, seconds),
        (Some(days), &[hours]) => total_seconds(days, hours, 0, 0),
        (Some(days), &[hours, minutes]) => total_seconds(days, hours, minutes, 0),
        (days, &[hours, minutes, seconds]) => total_seconds(days.unwrap_or(0), hours, minutes, seconds),
        _ => None,
    }
}

fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A whole number, of at least `least`.
pub(super) fn count(value: &str, least: u32) -> Result<u32, String> {
    let count = number(value).and_then(|count| u32::try_from(count).ok()).filter(|count| *count >= least);
    count.ok_or_else(|| format!("'{value}' is not a number of at least {least}"))
}

/// The least of `2` or `2-4`, and whether it is a range.
pub(super) fn nodes(value: &str) -> Result<(u32, bool), String> {
    let (least, most) = value.split_once('-').map_or((value, None), |(least, most)| (least, Some(most)));
    let (least, most) = (count(least, 1)?, most.map(|most| count(most, 1)).transpose()?);
    match most.is_some_and(|most| most < least) {
        true => Err(format!("'{value}' has no number of nodes in it: write the least one first")),
        false => Ok((least, most.is_some())),
    }
}

/// An amount of memory, in megabytes unless a unit is given. In Slurm, 0 means all that there is.
pub(super) fn memory(value: &str) -> Result<Bytes, String> {
    let wrong =
        || format!("'{value}' is not an amount of memory of Slurm: write for example 4000 (MB) or 64G");
    let upper = value.to_ascii_uppercase();
    let without_b = upper.strip_suffix('B').unwrap_or(&upper);
    let (digits, shift) = match without_b.char_indices().last() {
        Some((at, 'K')) => (&without_b[..at], 10),
        Some((at, 'M')) => (&without_b[..at], 20),
        Some((at, 'G')) => (&without_b[..at], 30),
        Some((at, 'T')) => (&without_b[..at], 40),
        _ => (without_b, 20),
    };
    let amount = number(digits).filter(|_| !digits.is_empty());
    amount.and_then(|amount| amount.checked_mul(1 << shift)).map(Bytes).ok_or_else(wrong)
}

/// An amount as a flag takes it, in the largest unit without a remainder.
pub(super) fn memory_flag(amount: Bytes) -> String {
    let units = [(30, 'G'), (20, 'M'), (10, 'K')];
    let unit = units.iter().find(|(shift, _)| amount.0.is_multiple_of(1 << shift));
    unit.map_or_else(|| format!("{}B", amount.0), |(shift, unit)| format!("{}{unit}", amount.0 >> shift))
}

/// GPUs of a list such as `gpu:a100:2,nvme:1`, and what of it has no effect.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GpuCount {
    pub(super) count: Option<u32>,
    /// Types of GPU that were asked for.
    pub(super) types: Vec<String>,
    /// Resources that are no GPUs.
    pub(super) others: Vec<String>,
}

/// `gpu`, `gpu:2`, `gpu:a100:2`, `gres/gpu:2`, `none`, or a list of them.
pub(super) fn generic_resources(value: &str) -> Result<GpuCount, String> {
    let mut found = GpuCount::default();
    for item in value.split(',').filter(|item| *item != "none") {
        let name = item.strip_prefix("gres/").or_else(|| item.strip_prefix("gres:")).unwrap_or(item);
        match name.split_once(':').map_or((name, None), |(name, rest)| (name, Some(rest))) {
            ("gpu", rest) => add_gpus(&mut found, rest.unwrap_or("1"))?,
            ("", _) => return Err(format!("'{value}' is not a list of resources: write gpu:COUNT")),
            _ => found.others.push(item.to_owned()),
        }
    }
    found.count.get_or_insert(0);
    Ok(found)
}

/// `2`, `a100:2`, or a list of them.
pub(super) fn typed_gpus(value: &str) -> Result<GpuCount, String> {
    let mut found = GpuCount::default();
    value.split(',').try_for_each(|item| add_gpus(&mut found, item))?;
    Ok(found)
}

/// Adds `2`, `a100`, or `a100:2`.
fn add_gpus(found: &mut GpuCount, text: &str) -> Result<(), String> {
    let wrong = |_| format!("'{text}' is not a number of GPUs: write COUNT or TYPE:COUNT");
    let (kind, number) = match text.rsplit_once(':') {
        Some((kind, number)) => (Some(kind), number),
        None if text.starts_with(|first: char| first.is_ascii_alphabetic()) => (Some(text), "1"),
        None => (None, text),
    };
    let number = count(number, 0).map_err(wrong)?;
    found.types.extend(kind.map(str::to_owned));
    found.count = Some(found.count.unwrap_or(0).saturating_add(number));
    Ok(())
}

/// `afterok:12:13,afterany:14_5` as the flag has it: `afterok:12,afterok:13,afterany:14.5`.
pub(super) fn dependency(value: &str) -> Result<String, String> {
    if value.contains('?') {
        return Err(format!(
            "'{value}' starts after any of several jobs, which is not supported: use ',' for all"
        ));
    }
    let mut all = Vec::new();
    for clause in value.split(',') {
        let (when, jobs) = clause.split_once(':').map_or((clause, ""), |(when, jobs)| (when, jobs));
        match when {
            "afterok" | "afterany" | "afternotok" if !jobs.is_empty() => {
                all.extend(jobs.split(':').map(|job| format!("{when}:{}", job.replacen('_', ".", 1))));
            }
            "afterok" | "afterany" | "afternotok" => {
                return Err(format!("'{clause}' names no job: write {when}:ID"));
            }
            "singleton" => {
                return Err(
                    "singleton is not supported: name the jobs that have to end (afterany:ID), or run the \
                            jobs as an array with one member at once (--array=1-9%1)"
                        .into(),
                );
            }
            "after" | "aftercorr" | "afterburstbuffer" | "expand" => {
                return Err(format!("{when} is not supported: use afterok, afterany or afternotok"));
            }
            _ => return Err(format!("'{clause}' is not a dependency: write afterok:ID")),
        }
    }
    Ok(all.join(","))
}

/// In Slurm, the number in `now+60` is in seconds, and units are words: `now+1hour`.
pub(super) fn begin(value: &str) -> Result<String, String> {
    let Some(later) = value.strip_prefix("now+") else { return Ok(value.to_owned()) };
    let digits = later.bytes().take_while(u8::is_ascii_digit).count();
    let unit = match &later[digits..] {
        "" | "s" | "second" | "seconds" => "s",
        "m" | "minute" | "minutes" => "m",
        "h" | "hour" | "hours" => "h",
        "d" | "day" | "days" => "d",
        "week" | "weeks" => {
            let weeks = number(&later[..digits]).and_then(|weeks| weeks.checked_mul(7));
            let wrong = || format!("'{value}' is not a time");
            return weeks.map(|days| format!("now+{days}d")).ok_or_else(wrong);
        }
        _ => return Err(format!("'{value}' is not a time of Slurm: write for example now+1hour")),
    };
    Ok(format!("now+{}{unit}", &later[..digits]))
}

/// A signal as the flag has it, and the letters before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SignalValue<'a> {
    pub(super) flag: String,
    /// `B`: to the shell of the script alone; `R`: for a reservation.
    pub(super) letters: &'a str,
}

/// `USR1@90`, `B:USR1@90`, `10`; the time is in seconds.
pub(super) fn signal(value: &str) -> Result<SignalValue<'_>, String> {
    let (letters, signal) = value.split_once(':').map_or(("", value), |(letters, signal)| (letters, signal));
    if !letters.bytes().all(|letter| matches!(letter, b'B' | b'R')) {
        return Err(format!("'{value}' is not a signal of Slurm: write for example USR1@90"));
    }
    match signal.split_once('@') {
        Some((_, seconds)) if number(seconds).is_none() || seconds.is_empty() => {
            Err(format!("'{seconds}' is not a number of seconds: write for example USR1@90"))
        }
        Some(_) => Ok(SignalValue { flag: format!("{signal}s"), letters }),
        None => Ok(SignalValue { flag: signal.to_owned(), letters }),
    }
}
/// What a list of mail types asks for.
#[derive(Debug, Default)]
pub(super) struct MailTypes {
    /// The events, as `--notify` takes them; none if it asks for none.
    pub(super) events: Option<String>,
    /// The types that nothing corresponds to.
    pub(super) without_effect: Vec<String>,
}

/// `END,FAIL`, `ALL`, `NONE`.
pub(super) fn mail_type(value: &str) -> Result<MailTypes, String> {
    let (mut events, mut without_effect) = (Vec::new(), Vec::new());
    for word in value.split(',') {
        match word.to_ascii_uppercase().as_str() {
            "NONE" => {}
            "BEGIN" => events.push("start"),
            "END" => events.push("end"),
            "FAIL" => events.push("fail"),
            "REQUEUE" => events.push("requeue"),
            "TIME_LIMIT" => events.push("timeout"),
            "ALL" => events.extend(["start", "end", "requeue"]),
            kind @ ("INVALID_DEPEND" | "STAGE_OUT" | "TIME_LIMIT_90" | "TIME_LIMIT_80" | "TIME_LIMIT_50"
            | "ARRAY_TASKS") => without_effect.push(kind.to_owned()),
            _ => return Err(format!("'{word}' is not a type of mail: write for example BEGIN,END,FAIL")),
        }
    }
    let events = Some(events.join(",")).filter(|events| !events.is_empty());
    Ok(MailTypes { events, without_effect })
}

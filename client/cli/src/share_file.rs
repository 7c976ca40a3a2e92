//! The file of projects that an admin applies with `share apply`, and how it differs from the present table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cohabit_client::types::{RunningLimits, ShareProject, ShareTable, UserLimits, counted};
use cohabit_console::{CommandError, CommandErrorKind, printable_line};
use serde::Deserialize;

use crate::values::parse_duration;

/// The largest file, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// As it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ShareFile {
    #[serde(default)]
    fair_share: FairShareSection,
    #[serde(default)]
    user: UserSection,
    #[serde(default)]
    projects: BTreeMap<String, ProjectSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FairShareSection {
    half_life: Option<String>,
    open_part: Option<f64>,
    keep_for: Option<String>,
    #[serde(default)]
    price: BTreeMap<String, f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct UserSection {
    running_gpus: Option<f64>,
    running_jobs: Option<u64>,
    queued_jobs: Option<u64>,
    submits_per_minute: Option<u32>,
    high_gpu_hours: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProjectSection {
    weight: Option<f64>,
    guaranteed: Option<f64>,
    users: Vec<String>,
    running_gpus: Option<f64>,
    running_jobs: Option<u64>,
}

/// Reads a table of shares.
///
/// # Errors
/// If the file cannot be read, or is no such table: with the line.
pub(crate) fn read_share_file(path: &Path) -> Result<ShareTable, CommandError> {
    let shown = path.display();
    let usage = |message: String| CommandError::new(CommandErrorKind::Usage, message);
    let size = std::fs::metadata(path).map_err(|error| usage(format!("cannot read {shown}: {error}")))?.len();
    if size > MOST_BYTES {
        return Err(usage(format!("{shown} has {size} bytes, and a table of shares at most {MOST_BYTES}")));
    }
    let text =
        std::fs::read_to_string(path).map_err(|error| usage(format!("cannot read {shown}: {error}")))?;
    parse(&text).map_err(|problem| usage(format!("{shown}: {}", problem.trim_end())))
}

fn parse(text: &str) -> Result<ShareTable, String> {
    let file: ShareFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let usual = ShareTable::default();
    let duration = |name: &str, text: &Option<String>, usual| match text {
        None => Ok(usual),
        Some(text) => parse_duration(text).map_err(|error| format!("{name}: {error}")),
    };
    let half_life = duration("half-life", &file.fair_share.half_life, usual.half_life)?;
    let keep_for = duration("keep-for", &file.fair_share.keep_for, usual.keep_for)?;
    let open_part = thousandths("open-part", file.fair_share.open_part.unwrap_or(0.0))?;
    let user = UserLimits {
        running: running_limits("each user", file.user.running_gpus, file.user.running_jobs)?,
        queued_jobs: file.user.queued_jobs,
        submits_per_minute: file.user.submits_per_minute,
        high_gpu_hours: file.user.high_gpu_hours.unwrap_or(usual.user.high_gpu_hours),
    };
    let price = |(model, price): (String, f64)| {
        Ok((model.clone(), thousandths(&format!("the price of {model}"), price)?))
    };
    let prices = file.fair_share.price.into_iter().map(price).collect::<Result<_, String>>()?;
    let projects = file.projects.into_iter().map(|(name, section)| {
        let weight = thousandths(&format!("the weight of {name}"), section.weight.unwrap_or(1.0))?;
        let guaranteed =
            thousandths(&format!("what is guaranteed to {name}"), section.guaranteed.unwrap_or(0.0))?;
        let listed = section.users.len();
        let users: BTreeSet<String> = section.users.into_iter().collect();
        if users.len() < listed {
            return Err(format!("project {name} names a user twice"));
        }
        let running = running_limits(&format!("project {name}"), section.running_gpus, section.running_jobs)?;
        Ok((name, ShareProject { weight, guaranteed: guaranteed.into(), users, running }))
    });
    let projects = projects.collect::<Result<_, String>>()?;
    Ok(ShareTable { half_life, prices, projects, open_part, keep_for, user })
}

fn running_limits(whose: &str, gpus: Option<f64>, jobs: Option<u64>) -> Result<RunningLimits, String> {
    let gpus = gpus.map(|gpus| thousandths(&format!("running-gpus of {whose}"), gpus)).transpose()?;
    Ok(RunningLimits { gpus: gpus.map(u64::from), jobs })
}

/// A number as thousandths. Zero and more; whether zero makes sense is for the head to say.
fn thousandths(what: &str, number: f64) -> Result<u32, String> {
    let amount = (number * 1_000.0).round();
    match (0.0..=f64::from(u32::MAX)).contains(&amount) {
        true => Ok(amount as u32),
        false => Err(format!("{what} is {number}, and must be a number from 0 to 1000000")),
    }
}

/// What would change, line by line; nothing where both are the same.
pub(crate) fn difference(before: &ShareTable, after: &ShareTable) -> Vec<String> {
    let mut lines = Vec::new();
    let mut told = |what: &str, before: String, after: String| {
        if before != after {
            lines.push(format!("{what}: {before} → {after}"));
        }
    };
    told("half-life", half_life(before), half_life(after));
    let keep_for = |table: &ShareTable| table.keep_for.to_string();
    told("keep-for", keep_for(before), keep_for(after));
    told("open-part", number(before.open_part.into()), number(after.open_part.into()));
    told("each user", described_limits(&before.user), described_limits(&after.user));
    for model in before.prices.keys().chain(after.prices.keys()).collect::<BTreeSet<_>>() {
        let what = format!("price of {}", printable_line(model));
        told(&what, number(before.price(model).into()), number(after.price(model).into()));
    }
    for name in before.projects.keys().chain(after.projects.keys()).collect::<BTreeSet<_>>() {
        let project =
            |table: &ShareTable| table.projects.get(name).map_or_else(|| "none".to_owned(), described);
        told(&format!("project {}", printable_line(name)), project(before), project(after));
    }
    lines
}

fn described(project: &ShareProject) -> String {
    let users: Vec<&str> = project.users.iter().map(String::as_str).collect();
    let guaranteed = match project.guaranteed {
        0 => String::new(),
        amount => format!(", guaranteed {}", number(amount)),
    };
    let limits: Vec<String> = running(&project.running).map(|limit| format!(", {limit}")).collect();
    format!(
        "weight {}{guaranteed}{}, users {}",
        number(project.weight.into()),
        limits.concat(),
        printable_line(&users.join(" "))
    )
}

/// The limits as their keys and values.
fn running(limits: &RunningLimits) -> impl Iterator<Item = String> {
    let gpus = limits.gpus.map(|gpus| format!("running-gpus {}", number(gpus)));
    gpus.into_iter().chain(limits.jobs.map(|jobs| format!("running-jobs {jobs}")))
}

fn described_limits(limits: &UserLimits) -> String {
    let queued = limits.queued_jobs.map(|jobs| format!("queued-jobs {jobs}"));
    let submits = limits.submits_per_minute.map(|submits| format!("submits-per-minute {submits}"));
    let high = format!("high-gpu-hours {}", limits.high_gpu_hours);
    let all: Vec<String> =
        running(&limits.running).chain(queued).chain(submits).chain(std::iter::once(high)).collect();
    all.join(", ")
}

/// The half-life in days where it is so many.
pub(crate) fn half_life(table: &ShareTable) -> String {
    let seconds = table.half_life.as_micros() / 1_000_000;
    match seconds % 86_400 {
        0 => counted(seconds / 86_400, "day", "days"),
        _ => table.half_life.to_string(),
    }
}

/// Thousandths as people write them: without zeros at the end.
pub(crate) fn number(thousandths: u64) -> String {
    let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::Span;

    use super::*;

    const FILE: &str = r#"
[fair-share]
half-life = "3d"
price = { V100 = 0.3 }

[projects.vision]
weight = 2
guaranteed = 8
users = ["ada", "ben"]

[projects.language]
users = ["cyd"]
"#;

    #[test]
    fn a_file_is_a_table() {
        let table = parse(FILE).unwrap();
        assert_eq!(
            (table.half_life, table.price("V100"), table.price("H200")),
            (Span::from_secs(3 * 86_400), 300, 1_000)
        );
        let vision = &table.projects["vision"];
        assert_eq!((vision.weight, vision.guaranteed, vision.users.len()), (2_000, 8_000, 2));
        assert_eq!((table.projects["language"].weight, table.project_of("cyd")), (1_000, Some("language")));
        assert_eq!(parse("").unwrap(), ShareTable::default());
    }

    #[test]
    fn the_table_of_the_guide_is_one() {
        let guide = include_str!("../../../docs/SHARING.md");
        let (_, block) = guide.split_once("```toml\n").unwrap();
        let table = parse(block.split_once("```").unwrap().0).unwrap();
        assert_eq!((table.open_part, table.keep_for), (250, Span::from_secs(3_600)));
        assert_eq!((table.user.running.gpus, table.user.running.jobs), (Some(8_000), Some(100)));
        assert_eq!((table.user.queued_jobs, table.user.submits_per_minute), (Some(1_000), Some(60)));
        assert_eq!((table.user.high_gpu_hours, table.projects["vision"].running.gpus), (24, Some(12_000)));
        let lines = difference(&ShareTable::default(), &table);
        let each = "each user: high-gpu-hours 24 → running-gpus 8, running-jobs 100, queued-jobs 1000, \
                    submits-per-minute 60, high-gpu-hours 24";
        assert!(
            lines.iter().any(|line| line == each) && lines.contains(&"open-part: 0 → 0.25".to_owned()),
            "{lines:?}"
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |text: &str| parse(text).unwrap_err();
        assert!(of("[fair-share]\nhalf-live = \"7d\"").contains("half-live"));
        assert!(of("[fair-share]\nhalf-life = \"7\"").starts_with("half-life: '7' has no unit"));
        assert!(of("[projects.a]\nweight = -1\nusers = []").contains("the weight of a is -1"));
        assert!(of("[projects.a]\nusers = ['x', 'x']").contains("project a names a user twice"));
        assert!(of("[projects.a]\nweight = 1").contains("missing field `users`"));
    }

    #[test]
    fn a_difference_names_what_changes_and_nothing_else() {
        let before = parse(FILE).unwrap();
        assert_eq!(difference(&before, &before), [""; 0]);
        let after = parse(
            &FILE
                .replace("\"3d\"", "\"7d\"")
                .replace("weight = 2", "weight = 2.5")
                .replace("language", "speech"),
        )
        .unwrap();
        let lines = difference(&before, &after);
        let expected = [
            "half-life: 3 days → 7 days",
            "project language: weight 1, users cyd → none",
            "project speech: none → weight 1, users cyd",
            "project vision: weight 2, guaranteed 8, users ada ben → weight 2.5, guaranteed 8, users ada ben",
        ];
        assert_eq!(lines, expected);
    }
}

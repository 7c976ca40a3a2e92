//! The file of projects that an admin applies with `share apply`, and how it differs from the present table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cohabit_client::types::{ShareProject, ShareTable, counted};
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
    projects: BTreeMap<String, ProjectSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FairShareSection {
    half_life: Option<String>,
    #[serde(default)]
    price: BTreeMap<String, f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProjectSection {
    weight: Option<f64>,
    guaranteed: Option<f64>,
    users: Vec<String>,
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
    let half_life = match &file.fair_share.half_life {
        None => usual.half_life,
        Some(text) => parse_duration(text).map_err(|error| format!("half-life: {error}"))?,
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
        Ok((name, ShareProject { weight, guaranteed: guaranteed.into(), users }))
    });
    let projects = projects.collect::<Result<_, String>>()?;
    Ok(ShareTable { half_life, prices, projects })
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
    format!(
        "weight {}{guaranteed}, users {}",
        number(project.weight.into()),
        printable_line(&users.join(" "))
    )
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

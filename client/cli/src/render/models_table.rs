//! Models of interference: what the head goes by, a line for each version, and the same for scripts.

use cohabit_client::proto::{ModelChoice, ModelRecord, Models};
use cohabit_console::{Screen, table};
use jiff::tz::TimeZone;

use super::local_time;

/// The version that the head goes by: its number, or `base`.
pub(crate) fn current(models: &Models) -> String {
    models.current.map_or(ModelChoice::Base, ModelChoice::Version).to_string()
}

/// Sentences and the table, with the viewer's clock.
pub(crate) fn models_sheet(models: &Models, zone: &TimeZone, screen: Screen) -> String {
    let mut table = table::table(&["VERSION", "MODEL", "LEARNED", "ROWS", "ERROR", "BEFORE", "ON"], screen);
    let mark = |choice: ModelChoice| match current(models) == choice.to_string() {
        true => format!("{choice} *"),
        false => choice.to_string(),
    };
    let none = || "-".to_owned();
    table.add_row([mark(ModelChoice::Base), models.base.clone(), none(), none(), none(), none(), none()]);
    for version in &models.versions {
        table.add_row([
            mark(ModelChoice::Version(version.version)),
            model(version),
            local_time(version.trained_at, zone),
            version.rows.to_string(),
            percent(version.error),
            percent(version.error_before),
            format!("{} rows", version.judged_on),
        ]);
    }
    format!("{}\n{}", sentences(models), table::text(&table))
}

fn sentences(models: &Models) -> String {
    let goes_by = match models.current {
        Some(version) => format!("The head goes by version {version}"),
        None => "The head goes by what it was started with".to_owned(),
    };
    let until = match models.held {
        true => ", until another is chosen.",
        false => ", until it learns better.",
    };
    let lived = format!("It has seen {} set(s) of jobs together, {} rows.", models.sets, models.rows);
    let trouble = models.trouble.as_ref().map(|why| {
        format!("\nBut {why}: until another is chosen or learned, the law of fair shares takes its place.")
    });
    format!("{goes_by}{until} {lived}{}\n", trouble.unwrap_or_default())
}

/// Its kind; of one that is only adapted, to what.
fn model(version: &ModelRecord) -> String {
    match version.kind.as_str() {
        "adapted" => format!("{}, adapted", version.base),
        kind => kind.to_owned(),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use cohabit_client::proto::Time;

    use cohabit_console::{Colour, with_schema};

    use super::super::model_documents::ModelsDocument;
    use super::*;

    fn version(number: u32, kind: &str) -> ModelRecord {
        ModelRecord {
            version: number,
            kind: kind.into(),
            base: "pretrained".into(),
            trained_at: Time::from_micros(1_795_250_000_000_000),
            rows: 46 * u64::from(number),
            judged_on: 10,
            error: 0.0625,
            error_before: 0.118,
        }
    }

    fn models() -> Models {
        let versions = vec![version(1, "adapted"), version(2, "gaussian")];
        Models {
            base: "pretrained".into(),
            versions,
            current: Some(2),
            sets: 60,
            rows: 124,
            ..Models::default()
        }
    }

    fn sheet(models: &Models) -> String {
        models_sheet(models, &TimeZone::UTC, Screen { width: None, colour: Colour::None })
    }

    #[test]
    fn people_see_what_the_head_goes_by_and_what_it_was_better_than() {
        insta::assert_snapshot!("models", sheet(&models()));
    }

    #[test]
    fn a_choice_and_a_failure_are_told_in_words() {
        let trouble = Some("it panicked".to_owned());
        let told = sheet(&Models { current: None, held: true, trouble, ..models() });
        assert!(told.contains("what it was started with, until another is chosen."), "{told}");
        assert!(told.contains("But it panicked"), "{told}");
        assert!(told.contains("base *"), "{told}");
    }

    #[test]
    fn scripts_see_the_same() {
        let told = serde_json::to_string_pretty(&with_schema(ModelsDocument::from(&models()))).unwrap();
        insta::assert_snapshot!("models_json", told);
    }
}

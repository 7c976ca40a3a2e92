//! The table of models of slowdowns, for `models`.

use cohabit_client::types::{ModelChoice, ModelRecord, Models, counted};
use cohabit_console::table::{self, cell};
use cohabit_console::{Screen, printable_line};
use jiff::tz::TimeZone;

use super::local_time;

/// The version that the head uses: its number, or `base`.
pub(crate) fn current(models: &Models) -> String {
    models.current.map_or(ModelChoice::Base, ModelChoice::Version).to_string()
}

/// The current state in sentences, and the table, with times in `zone`.
pub(crate) fn models_sheet(models: &Models, zone: &TimeZone, screen: Screen) -> String {
    let mut table = table::table(&["VERSION", "MODEL", "LEARNED", "ROWS", "ERROR", "BEFORE", "ON"], screen);
    let mark = |choice: ModelChoice| match current(models) == choice.to_string() {
        true => format!("{choice} *"),
        false => choice.to_string(),
    };
    let none = || "-".to_owned();
    table.add_row(
        [mark(ModelChoice::Base), models.base.clone(), none(), none(), none(), none(), none()].map(cell),
    );
    for version in &models.versions {
        table.add_row(
            [
                mark(ModelChoice::Version(version.version)),
                model(version),
                local_time(version.trained_at, zone),
                version.rows.to_string(),
                percent(version.error),
                percent(version.error_before),
                counted(version.validation_rows, "row", "rows"),
            ]
            .map(cell),
        );
    }
    format!("{}\n{}", sentences(models), table::text(&table))
}

fn sentences(models: &Models) -> String {
    let current = match models.current {
        Some(version) => format!("The head uses version {version}"),
        None => "The head uses the source that it was started with".to_owned(),
    };
    let until = match models.pinned {
        true => " until another one is chosen.",
        false => " until it learns a better one.",
    };
    let observed = format!(
        "It has observed {} of jobs that shared a GPU ({}).",
        counted(models.sets, "set", "sets"),
        counted(models.rows, "row", "rows")
    );
    let problem = models.failure.as_ref().map(|why| {
        format!("\nThis model is not usable: {}. The law of fair shares is used until another one is chosen or learned.", printable_line(why))
    });
    format!("{current}{until} {observed}{}\n", problem.unwrap_or_default())
}

/// The kind of the model; for an adapted model, what it was adapted from.
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
    use cohabit_client::types::Time;

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
            validation_rows: 10,
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
    fn the_sheet_shows_the_current_version_and_its_errors() {
        insta::assert_snapshot!("models", sheet(&models()));
    }

    #[test]
    fn a_choice_and_a_failure_are_described() {
        let failure = Some("it panicked".to_owned());
        let text = sheet(&Models { current: None, pinned: true, failure, ..models() });
        assert!(text.contains("the source that it was started with until another one is chosen."), "{text}");
        assert!(text.contains("not usable: it panicked"), "{text}");
        assert!(text.contains("base *"), "{text}");
    }

    #[test]
    fn the_document_has_the_same_content() {
        let text = serde_json::to_string_pretty(&with_schema(ModelsDocument::from(&models()))).unwrap();
        insta::assert_snapshot!("models_json", text);
    }
}

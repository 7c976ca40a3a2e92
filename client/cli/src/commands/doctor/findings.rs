//! The findings of the checks and their table.

use cohabit_console::Screen;
use cohabit_console::table::{self, cell};
use comfy_table::{Cell, Color};
use serde::Serialize;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was checked.
    #[serde(rename = "matter")]
    pub(super) check: &'static str,
    /// How it is.
    #[serde(rename = "judgement")]
    pub(super) status: Diagnosis,
    /// What was observed.
    #[serde(rename = "seen")]
    pub(super) observed: String,
    /// What to do, if anything.
    pub(super) advice: Option<String>,
}

/// The status of a check. The names in documents predate these variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Diagnosis {
    /// As it should be.
    #[serde(rename = "good")]
    Ok,
    /// It works, but not for everything.
    #[serde(rename = "doubtful")]
    Warning,
    /// It does not work.
    #[serde(rename = "broken")]
    Error,
}

/// The results of all checks.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    pub(super) findings: Vec<Finding>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, observed: impl Into<String>) -> Finding {
        Finding { check, status: Diagnosis::Ok, observed: observed.into(), advice: None }
    }

    pub(super) fn warning(
        check: &'static str,
        observed: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { check, status: Diagnosis::Warning, observed: observed.into(), advice: Some(advice.into()) }
    }

    pub(super) fn error(
        check: &'static str,
        observed: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { check, status: Diagnosis::Error, observed: observed.into(), advice: Some(advice.into()) }
    }
}

impl Findings {
    /// One line for each check: what was observed, then the advice.
    pub(super) fn table(&self, screen: Screen) -> String {
        let mut table = table::table(&["CHECK", "RESULT", "DETAILS"], screen);
        for finding in &self.findings {
            let status = match finding.status {
                Diagnosis::Ok => Cell::new("ok").fg(Color::Green),
                Diagnosis::Warning => Cell::new("warning").fg(Color::Yellow),
                Diagnosis::Error => Cell::new("ERROR").fg(Color::Red),
            };
            let observed = match &finding.advice {
                Some(advice) => format!("{}: {advice}", finding.observed),
                None => finding.observed.clone(),
            };
            table.add_row([Cell::new(finding.check), status, cell(observed)]);
        }
        table::text(&table)
    }
}

/// Names, with commas between them.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

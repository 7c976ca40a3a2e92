//! What was found, and how it is shown.

use cohabit_console::{Screen, table};
use comfy_table::{Cell, Color};
use serde::Serialize;

/// What was found about one matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at.
    pub(super) matter: &'static str,
    /// How it is.
    pub(super) judgement: Diagnosis,
    /// What was seen.
    pub(super) seen: String,
    /// What to do, if anything.
    pub(super) advice: Option<String>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Diagnosis {
    /// As it should be.
    Good,
    /// It works, but not for everything.
    Doubtful,
    /// It does not work.
    Broken,
}

/// All that was found.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    pub(super) findings: Vec<Finding>,
}

impl Finding {
    pub(super) fn good(matter: &'static str, seen: impl Into<String>) -> Finding {
        Finding { matter, judgement: Diagnosis::Good, seen: seen.into(), advice: None }
    }

    pub(super) fn doubtful(
        matter: &'static str,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { matter, judgement: Diagnosis::Doubtful, seen: seen.into(), advice: Some(advice.into()) }
    }

    pub(super) fn broken(
        matter: &'static str,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { matter, judgement: Diagnosis::Broken, seen: seen.into(), advice: Some(advice.into()) }
    }
}

impl Findings {
    /// A line for each, the advice behind what was seen.
    pub(super) fn table(&self, screen: Screen) -> String {
        let mut table = table::table(&["CHECK", "RESULT", "SEEN"], screen);
        for finding in &self.findings {
            let judgement = match finding.judgement {
                Diagnosis::Good => Cell::new("good").fg(Color::Green),
                Diagnosis::Doubtful => Cell::new("doubtful").fg(Color::Yellow),
                Diagnosis::Broken => Cell::new("BROKEN").fg(Color::Red),
            };
            let seen = match &finding.advice {
                Some(advice) => format!("{}: {advice}", finding.seen),
                None => finding.seen.clone(),
            };
            table.add_row([Cell::new(finding.matter), judgement, Cell::new(seen)]);
        }
        table::text(&table)
    }
}

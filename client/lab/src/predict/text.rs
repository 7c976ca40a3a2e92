//! The description and the errors of a model as text.

use cohabit_predict::interference::{ModelCard, PredictionMetrics, UsageSources};
use cohabit_types::counted;

use super::document::EvaluationDocument;

/// The description of a model.
pub(super) fn card(card: &ModelCard) -> String {
    let data = &card.data;
    let mut lines = vec![
        sheet_line("model", &card.model),
        sheet_line("trained by", &format!("cohabit {}, seed {}", card.cohabit, card.seed)),
        sheet_line(
            "data",
            &format!(
                "{} ({}): {}, {}",
                data.file,
                data.format,
                counted(data.sets, "set", "sets"),
                counted(data.rows, "row", "rows")
            ),
        ),
        sheet_line("gpus", &data.gpus.join(", ")),
        sheet_line("configurations", &data.configurations.to_string()),
        sheet_line("features", &card.features.join(", ")),
        sheet_line("epochs", &card.curve.len().to_string()),
    ];
    lines.extend(usage(&card.usage));
    lines.extend(figures("on the training data", &card.training));
    for held in &card.held_out {
        let after = match held.observed {
            0 => String::new(),
            observed => format!(", {observed} observed"),
        };
        lines.extend(figures(&format!("without {}{after}", held.split), &held.figures));
    }
    lines.push(sheet_line("command", &card.command));
    lines.concat()
}

/// The errors of a model on given measurements.
pub(super) fn evaluation(evaluation: &EvaluationDocument<'_>) -> String {
    let mut lines = vec![sheet_line("model", evaluation.model)];
    lines.extend(usage(&evaluation.usage));
    lines.extend(figures("on this data", evaluation.figures));
    lines.extend(evaluation.us_per_set.map(|us| sheet_line("time", &format!("{us:.1} us per set"))));
    lines.concat()
}

/// A fraction as a percentage, such as `7.4%`, or `-`.
pub(super) fn percent_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}%", value * 100.0))
}

/// Labels and values of the errors, without those that were not measured.
pub(super) fn figure_rows(figures: &PredictionMetrics) -> Vec<(&'static str, String)> {
    let rows = [
        ("slowdown, mean error", figures.mape_slowdown),
        ("slowdown, 95th percentile", figures.p95_ape_slowdown),
        ("slowdown, largest error", figures.max_ape_slowdown),
        ("within 1 stated uncertainty", figures.coverage_1sigma),
        ("within 2 stated uncertainties", figures.coverage_2sigma),
        ("memory, mean error", figures.mape_memory),
        ("memory, scaled from alone", figures.mape_memory_scaled),
        ("utilization, mean error", figures.mape_utilization),
        ("utilization, scaled from alone", figures.mape_utilization_scaled),
        ("infeasible sets, recall", figures.infeasible_recall),
        ("infeasible sets, precision", figures.infeasible_precision),
    ];
    let known = rows.into_iter().filter_map(|(name, value)| Some((name, percent_or_dash(Some(value?)))));
    std::iter::once(("rows", figures.rows.to_string())).chain(known).collect()
}

fn figures(title: &str, figures: &PredictionMetrics) -> Vec<String> {
    let rows = figure_rows(figures).into_iter().map(|(name, value)| format!("  {name:30} {value:>8}\n"));
    std::iter::once(format!("{title}\n")).chain(rows).collect()
}

/// A sentence on each quantity that members use.
fn usage(sources: &UsageSources) -> impl Iterator<Item = String> {
    sources.sentences().into_iter().map(|(name, sentence)| sheet_line(name, &sentence))
}

fn sheet_line(name: &str, value: &str) -> String {
    format!("{name:15} {value}\n")
}

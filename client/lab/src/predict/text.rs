//! What people read of a model: its card and its figures, a line for each.

use cohabit_predict::interference::{ModelCard, PredictionMetrics};

use super::document::EvaluationDocument;

/// All there is to tell of a model.
pub(super) fn card(card: &ModelCard) -> String {
    let data = &card.data;
    let mut lines = vec![
        line("model", &card.model),
        line("trained by", &format!("cohabit {}, seed {}", card.cohabit, card.seed)),
        line("data", &format!("{} ({}): {} sets, {} rows", data.file, data.format, data.sets, data.rows)),
        line("gpus", &data.gpus.join(", ")),
        line("configurations", &data.configurations.to_string()),
        line("looks at", &card.features.join(", ")),
        line("epochs", &card.curve.len().to_string()),
    ];
    lines.extend(figures("on its own data", &card.training));
    for held in &card.held_out {
        let after = match held.observed {
            0 => String::new(),
            observed => format!(", {observed} observed"),
        };
        lines.extend(figures(&format!("without {}{after}", held.split), &held.figures));
    }
    lines.push(line("command", &card.command));
    lines.concat()
}

/// What a model was asked, and how well it answered.
pub(super) fn evaluation(evaluation: &EvaluationDocument<'_>) -> String {
    let mut lines = vec![line("model", evaluation.model)];
    lines.extend(figures("on these data", evaluation.figures));
    lines.extend(evaluation.us_per_set.map(|us| line("time", &format!("{us:.1} us for each set"))));
    lines.concat()
}

/// A part of one as people write it: `7.4%`.
pub(super) fn part(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}%", value * 100.0))
}

/// The figures in words, what was not measured left out.
pub(super) fn told(figures: &PredictionMetrics) -> Vec<(&'static str, String)> {
    let told = [
        ("slowdown, mean error", figures.mape_slowdown),
        ("slowdown, 95th percentile", figures.p95_ape_slowdown),
        ("slowdown, largest error", figures.max_ape_slowdown),
        ("within 1 stated uncertainty", figures.coverage_1sigma),
        ("within 2 stated uncertainties", figures.coverage_2sigma),
        ("memory, mean error", figures.mape_memory),
        ("utilisation, mean error", figures.mape_utilisation),
        ("sets that do not fit, found", figures.infeasible_recall),
        ("said not to fit, rightly", figures.infeasible_precision),
    ];
    let known = told.into_iter().filter_map(|(name, value)| Some((name, part(Some(value?)))));
    std::iter::once(("rows", figures.rows.to_string())).chain(known).collect()
}

fn figures(title: &str, figures: &PredictionMetrics) -> Vec<String> {
    let rows = told(figures).into_iter().map(|(name, value)| format!("  {name:30} {value:>8}\n"));
    std::iter::once(format!("{title}\n")).chain(rows).collect()
}

fn line(name: &str, value: &str) -> String {
    format!("{name:15} {value}\n")
}

//! Progress in a few words.

use cohabit_client::proto::Progress;

/// The metric that people look for first.
const FIRST: &str = "loss";

/// `42% 420/1000 loss 0.412`: the part, the steps, and one metric.
pub(crate) fn progress_text(progress: &Progress) -> String {
    let steps = match progress.total {
        Some(total) if total > 0 => {
            format!("{}% {}/{total}", progress.step.saturating_mul(100) / total, progress.step)
        }
        Some(_) | None => format!("step {}", progress.step),
    };
    match metric(progress) {
        Some((name, value)) => format!("{steps} {name} {}", format_number(value)),
        None => steps,
    }
}

fn metric(progress: &Progress) -> Option<(&str, f64)> {
    let all = || progress.metrics.iter().map(|(name, value)| (name.as_str(), *value));
    all().find(|(name, _)| *name == FIRST).or_else(|| all().next())
}

/// Three significant figures or so, without an exponent where it can be helped.
pub(crate) fn format_number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-4..1e7).contains(&size) => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_comes_before_other_metrics() {
        let metrics = [("accuracy".to_owned(), 0.9), ("loss".to_owned(), 0.41234)].into();
        let progress = Progress { step: 420, total: Some(1_000), metrics, ..Progress::default() };
        assert_eq!(progress_text(&progress), "42% 420/1000 loss 0.4123");
        assert_eq!(progress_text(&Progress { step: 7, ..Progress::default() }), "step 7");
        assert_eq!(progress_text(&Progress { total: Some(0), ..Progress::default() }), "step 0");
    }

    #[test]
    fn numbers_have_a_few_figures() {
        assert_eq!(
            [0.0, 1e-9, 0.5, 12.345, 12345.6, 1e12].map(format_number).join(" "),
            "0 1.00e-9 0.5000 12.35 12346 1.00e12"
        );
    }
}

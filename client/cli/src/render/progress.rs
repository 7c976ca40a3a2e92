//! The progress of a job as text.

use cohabit_client::types::Progress;
use cohabit_console::format_number;

/// The metric that is shown if a job reports several.
const FIRST: &str = "loss";

/// `42% 420/1000 loss 0.412`: percentage, steps and one metric.
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
}

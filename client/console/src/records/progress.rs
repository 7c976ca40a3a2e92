//! The progress of a job as text.

use crate::format_number;
use cohabit_types::{MetricValue, Progress, Span, Time};

/// The metric that is shown if a job reports several finite ones.
const FIRST: &str = "loss";
/// A job that reports several steps a second may be silent for so long.
const SHORT_SILENCE: Span = Span::from_secs(20);

/// `42% 420/1000 loss 0.412`: percentage, steps and one metric.
#[must_use]
pub fn progress_text(progress: &Progress) -> String {
    let steps = match progress.total {
        Some(total) if total > 0 => {
            format!("{}% {}/{total}", progress.step.saturating_mul(100) / total, progress.step)
        }
        Some(_) | None => format!("step {}", progress.step),
    };
    match metric_text(progress) {
        Some(metric) => format!("{steps} {metric}"),
        None => steps,
    }
}

/// `loss 0.412`: one metric, preferably one that is NaN or infinite.
#[must_use]
pub fn metric_text(progress: &Progress) -> Option<String> {
    let (name, value) = metric(progress)?;
    Some(format!("{name} {}", value_text(value)))
}

/// The value of a metric, short.
#[must_use]
pub fn value_text(value: MetricValue) -> String {
    match value.is_finite() {
        true => format_number(value.0),
        false => value.to_string(),
    }
}

/// Whether a metric is NaN or infinite.
#[must_use]
pub fn has_diverged(progress: &Progress) -> bool {
    progress.metrics.values().any(|value| !value.is_finite())
}

/// `last step 41 s ago`, once a job has been silent for longer than it takes two steps. Reports take some
/// seconds from the job to here, so a short silence tells nothing.
#[must_use]
pub fn silence(progress: &Progress, now: Time) -> Option<String> {
    let silent_for = now.since(progress.at);
    let two_steps = progress.rate.filter(|rate| *rate > 0.0).map(|rate| Span::from_secs_f64(2.0 / rate));
    let usual = two_steps.map_or(SHORT_SILENCE, |span| span.max(SHORT_SILENCE));
    (silent_for > usual).then(|| format!("last step {silent_for} ago"))
}

fn metric(progress: &Progress) -> Option<(&str, MetricValue)> {
    let all = || progress.metrics.iter().map(|(name, value)| (name.as_str(), *value));
    let first = || all().find(|(name, _)| *name == FIRST).or_else(|| all().next());
    all().find(|(_, value)| !value.is_finite()).or_else(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_comes_before_other_metrics() {
        let metrics = [("accuracy".to_owned(), 0.9.into()), ("loss".to_owned(), 0.41234.into())].into();
        let progress = Progress { step: 420, total: Some(1_000), metrics, ..Progress::default() };
        assert_eq!(progress_text(&progress), "42% 420/1000 loss 0.4123");
        assert_eq!(progress_text(&Progress { step: 7, ..Progress::default() }), "step 7");
        assert_eq!(progress_text(&Progress { total: Some(0), ..Progress::default() }), "step 0");
    }

    #[test]
    fn a_metric_that_is_no_number_comes_first() {
        let metrics = [("loss".to_owned(), 0.4.into()), ("norm".to_owned(), f64::NAN.into())].into();
        let progress = Progress { step: 7, metrics, ..Progress::default() };
        assert_eq!(progress_text(&progress), "step 7 norm NaN");
        assert!(has_diverged(&progress) && !has_diverged(&Progress::default()));
    }

    #[test]
    fn a_job_that_gets_on_is_not_said_to_be_silent() {
        let at = |secs| Time::EPOCH + Span::from_secs(secs);
        let progress = |rate| Progress { step: 7, rate, at: at(100), ..Progress::default() };
        assert_eq!(silence(&progress(Some(10.0)), at(120)), None);
        assert_eq!(silence(&progress(Some(10.0)), at(141)).as_deref(), Some("last step 41 s ago"));
        assert_eq!(silence(&progress(Some(0.01)), at(300)), None, "a step takes 100 s");
        assert_eq!(silence(&progress(Some(0.01)), at(301)).as_deref(), Some("last step 3 min 21 s ago"));
        assert_eq!(silence(&progress(None), at(121)).as_deref(), Some("last step 21 s ago"));
    }
}

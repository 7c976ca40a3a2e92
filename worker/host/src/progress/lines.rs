//! JSON lines as programs write them to `$COHABIT_PROGRESS`: `{"step": 120, "total": 1000, "loss": 0.41}`.
//!
//! Pure. Python writes `NaN` and `Infinity`, which are not JSON, and read all the same.

use std::collections::BTreeMap;

use cohabit_types::MetricValue;
use serde_json::Value;

/// The most metrics that are kept.
const MAX_METRICS: usize = 64;

/// The longest name of a metric, in bytes.
const MAX_NAME_LENGTH: usize = 100;

/// The content of one or more lines.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ProgressEntry {
    pub step: Option<u64>,
    pub total: Option<u64>,
    pub metrics: BTreeMap<String, MetricValue>,
}

/// Combines all lines of this text; later values replace earlier ones. `None` if no line can be parsed.
pub(crate) fn read(text: &[u8]) -> Option<ProgressEntry> {
    text.split(|byte| matches!(byte, b'\n' | b'\0')).filter_map(line).reduce(ProgressEntry::followed_by)
}

/// Each line of this text that can be parsed.
pub(crate) fn read_each(text: &[u8]) -> Vec<ProgressEntry> {
    text.split(|byte| matches!(byte, b'\n' | b'\0')).filter_map(line).collect()
}

impl ProgressEntry {
    fn followed_by(mut self, next: ProgressEntry) -> ProgressEntry {
        self.step = next.step.or(self.step);
        self.total = next.total.or(self.total);
        for (name, value) in next.metrics {
            keep(&mut self.metrics, name, value);
        }
        self
    }
}

/// Adds a metric unless there are too many.
pub(super) fn keep(metrics: &mut BTreeMap<String, MetricValue>, name: String, value: MetricValue) {
    if metrics.len() < MAX_METRICS || metrics.contains_key(&name) {
        metrics.insert(name, value);
    }
}

fn line(bytes: &[u8]) -> Option<ProgressEntry> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    if !text.starts_with('{') {
        return None;
    }
    let value = serde_json::from_str(text).or_else(|_| serde_json::from_str(&with_quoted_non_numbers(text)));
    let Ok(Value::Object(fields)) = value else { return None };
    let mut line = ProgressEntry::default();
    for (name, value) in fields {
        match (name.as_str(), metric(&value)) {
            ("step", _) => line.step = count(&value),
            ("total", _) => line.total = count(&value),
            (_, Some(metric)) if name.len() <= MAX_NAME_LENGTH => keep(&mut line.metrics, name, metric),
            (_, _) => {}
        }
    }
    (line.step.is_some() || !line.metrics.is_empty()).then_some(line)
}

/// A whole number, also in the form `120.0`.
fn count(value: &Value) -> Option<u64> {
    let whole = |number: &f64| *number >= 0.0 && *number < 9e15 && number.fract() == 0.0;
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|number| number as u64))
}

/// A number, or a text that stands for one that is not finite.
fn metric(value: &Value) -> Option<MetricValue> {
    value.as_f64().map(MetricValue).or_else(|| MetricValue::from_non_finite(value.as_str()?))
}

/// The text with quotes around each `NaN` and `Infinity` that has none.
fn with_quoted_non_numbers(text: &str) -> String {
    let pieces = text.split('"').scan(false, |escaped, piece| {
        let continues = std::mem::replace(escaped, piece.ends_with('\\'));
        Some((continues, piece))
    });
    let mut quoted = true;
    let clean = pieces.map(|(continues, piece)| {
        quoted ^= !continues;
        if quoted {
            piece.to_owned()
        } else {
            piece.replace("-Infinity", r#""-inf""#).replace("Infinity", r#""inf""#).replace("NaN", r#""NaN""#)
        }
    });
    clean.collect::<Vec<_>>().join("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics<const N: usize>(pairs: [(&str, f64); N]) -> BTreeMap<String, MetricValue> {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), MetricValue(value))).collect()
    }

    #[test]
    fn a_line_has_a_step_a_total_and_metrics() {
        let line = read(br#"{"step": 120, "total": 1000, "loss": 0.41, "epoch": 3}"#).unwrap();
        assert_eq!((line.step, line.total), (Some(120), Some(1000)));
        assert_eq!(line.metrics, metrics([("loss", 0.41), ("epoch", 3.0)]));
    }

    #[test]
    fn later_values_replace_earlier_ones() {
        let line =
            read(b"{\"step\":1,\"total\":9}\n{\"accuracy\":0.9}\n{\"step\":2,\"loss\":1.5}\n").unwrap();
        assert_eq!((line.step, line.total), (Some(2), Some(9)));
        assert_eq!(line.metrics, metrics([("accuracy", 0.9), ("loss", 1.5)]));
    }

    #[test]
    fn values_that_are_not_finite_are_kept_and_texts_are_ignored() {
        let line = read(
            br#"{"step": 5, "loss": NaN, "norm": -Infinity, "max": Infinity, "lr": 0.1, "NaN": 2, "a\"NaN": 3,
                "text": "NaN", "model": "vit", "none": null}"#
                .as_slice()
                .split(|byte| *byte == b'\n')
                .collect::<Vec<_>>()
                .concat()
                .as_slice(),
        )
        .unwrap();
        assert_eq!(line.step, Some(5));
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        let odd = [("loss", nan), ("norm", -infinity), ("max", infinity), ("text", nan)];
        let usual = [("lr", 0.1), ("NaN", 2.0), ("a\"NaN", 3.0)];
        assert_eq!(line.metrics, metrics(odd).into_iter().chain(metrics(usual)).collect());
    }

    #[test]
    fn steps_may_be_written_as_floating_point() {
        assert_eq!(read(br#"{"step": 120.0}"#).unwrap().step, Some(120));
        assert_eq!(read(br#"{"step": 1e3}"#).unwrap().step, Some(1000));
        for bad in ["-1", "1.5", "1e300", "\"7\"", "null", "[1]"] {
            assert_eq!(read(format!("{{\"step\": {bad}}}").as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn garbage_is_ignored() {
        for bad in
            [&b""[..], b"\n\n", b"step 5", b"{", b"{\"step\": 12", b"[1,2]", b"\xff\xfe", b"{}", b"\"step\""]
        {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert_eq!(read(b"\0\0\0{\"step\":1}\n{\"st").unwrap().step, Some(1));
        assert_eq!(read(b"\xff\n{\"step\":1}\r\nrubbish").unwrap().step, Some(1));
    }

    #[test]
    fn metrics_are_bounded() {
        let many: Vec<String> = (0..500).map(|n| format!("\"m{n}\": {n}")).collect();
        let line = read(format!("{{{}, \"{}\": 1}}", many.join(","), "x".repeat(200)).as_bytes()).unwrap();
        assert_eq!(line.metrics.len(), MAX_METRICS);
    }
}

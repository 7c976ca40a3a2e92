//! Values of metrics, which may be no finite numbers: a diverged training reports NaN.

use std::fmt;

use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The value of a metric. All NaNs are equal, and 0 is equal to -0.
///
/// In JSON, which has finite numbers only, the others are the texts `"NaN"`, `"Infinity"` and `"-Infinity"`.
#[derive(Debug, Clone, Copy)]
pub struct MetricValue(pub f64);

impl MetricValue {
    /// Whether it is neither NaN nor infinite.
    #[must_use]
    pub const fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    /// The value that this text stands for, if that is no finite number: `NaN`, `Infinity`, `-inf`.
    #[must_use]
    pub fn from_non_finite(text: &str) -> Option<MetricValue> {
        text.parse().ok().filter(|value: &f64| !value.is_finite()).map(MetricValue)
    }

    const fn non_finite_text(self) -> Option<&'static str> {
        match self.0 {
            value if value.is_finite() => None,
            value if value.is_nan() => Some("NaN"),
            value if value > 0.0 => Some("Infinity"),
            _ => Some("-Infinity"),
        }
    }
}

impl PartialEq for MetricValue {
    fn eq(&self, other: &MetricValue) -> bool {
        self.0 == other.0 || self.0.is_nan() && other.0.is_nan()
    }
}

impl Eq for MetricValue {}

impl From<f64> for MetricValue {
    fn from(value: f64) -> MetricValue {
        MetricValue(value)
    }
}

impl fmt::Display for MetricValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.non_finite_text() {
            Some(text) => f.write_str(text),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for MetricValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.non_finite_text().filter(|_| serializer.is_human_readable()) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for MetricValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MetricValue, D::Error> {
        match deserializer.is_human_readable() {
            true => deserializer.deserialize_any(NumberOrText),
            false => f64::deserialize(deserializer).map(MetricValue),
        }
    }
}

struct NumberOrText;

impl Visitor<'_> for NumberOrText {
    type Value = MetricValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or one of the texts NaN, Infinity and -Infinity")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<MetricValue, E> {
        Ok(MetricValue(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<MetricValue, E> {
        Ok(MetricValue(value as f64))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<MetricValue, E> {
        Ok(MetricValue(value as f64))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<MetricValue, E> {
        MetricValue::from_non_finite(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_no_finite_numbers_survive_json() {
        let values = [0.41, 3.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(MetricValue);
        let text = serde_json::to_string(&values).unwrap();
        assert_eq!(text, r#"[0.41,3.0,"NaN","Infinity","-Infinity"]"#);
        assert_eq!(serde_json::from_str::<Vec<MetricValue>>(&text).unwrap(), values);
        assert_eq!(serde_json::from_str::<Vec<MetricValue>>("[-2,7]").unwrap(), [-2.0, 7.0].map(MetricValue));
        for bad in ["\"0.5\"", "\"loss\"", "null", "[1]"] {
            assert!(serde_json::from_str::<MetricValue>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_nan_is_equal_to_itself() {
        assert_eq!(MetricValue(f64::NAN), MetricValue(-f64::NAN));
        assert_ne!(MetricValue(f64::NAN), MetricValue(0.0));
        assert_eq!(MetricValue(f64::NAN).to_string(), "NaN");
    }
}

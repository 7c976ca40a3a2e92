//! Two spans of time as people write a range.

use crate::Span;

/// Seconds in each unit, and from how many seconds on it is used.
const UNITS: [(&str, f64, f64); 4] =
    [("d", 86_400.0, 172_800.0), ("h", 3_600.0, 7_200.0), ("min", 60.0, 120.0), ("s", 1.0, 0.0)];

/// `10–40 min`: both in the unit of the larger one, rounded to two digits, and once where they are alike.
#[must_use]
pub fn span_range(least: Span, most: Span) -> String {
    let (least, most) = (least.as_secs_f64(), most.as_secs_f64());
    let Some((unit, seconds, _)) = UNITS.into_iter().find(|(_, _, from)| most >= *from) else {
        return String::new();
    };
    let (least, most) = (rounded(least / seconds), rounded(most / seconds));
    if least == most { format!("{most} {unit}") } else { format!("{least}–{most} {unit}") }
}

fn rounded(number: f64) -> String {
    match number {
        ..0.05 => "0".to_owned(),
        ..9.95 => format!("{number:.1}").trim_end_matches(".0").to_owned(),
        ..99.5 => format!("{number:.0}"),
        _ => {
            let digits = 10_f64.powf(number.log10().floor() - 1.0);
            format!("{:.0}", (number / digits).round() * digits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_have_the_unit_of_the_larger_one() {
        let range = |least: f64, most: f64| span_range(Span::from_secs_f64(least), Span::from_secs_f64(most));
        assert_eq!(range(600.0, 2_400.0), "10–40 min");
        assert_eq!(range(20.0, 2_400.0), "0.3–40 min");
        assert_eq!(range(0.0, 4.1), "0–4.1 s");
        assert_eq!(range(4.0, 4.0), "4 s");
        assert_eq!(range(5_400.0, 86_400.0), "1.5–24 h");
        assert_eq!(range(86_400.0, 30.0 * 86_400.0), "1–30 d");
        assert_eq!(range(0.0, 3_333.0 * 86_400.0), "0–3300 d");
        assert_eq!(range(59.0, 119.0), "59–120 s");
    }
}

//! Parts and hours as people read them.

/// A part of one, in percent; a dash where it is not known.
pub(super) fn percent(part: Option<f64>) -> String {
    part.map_or("-".to_owned(), |part| format!("{:.0}%", 100.0 * part))
}

/// Seconds as hours.
pub(super) fn hours(seconds: f64) -> f64 {
    seconds / 3_600.0
}

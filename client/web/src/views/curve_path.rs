//! Curves as paths of SVG.

use std::fmt::Write as _;

/// The path through these places, with a gap where there is none. Texts of places that are not finite would
/// be no path: callers leave them out.
pub(crate) fn curve_path(places: impl IntoIterator<Item = Option<(f64, f64)>>) -> String {
    let (mut path, mut is_drawing) = (String::new(), false);
    for place in places {
        let Some((x, y)) = place else {
            is_drawing = false;
            continue;
        };
        // A place alone is a short line: a point would not be seen.
        let step = if is_drawing { format!("L{x:.1} {y:.1}") } else { format!("M{x:.1} {y:.1}h.9") };
        // Writing to a string does not fail.
        let _ = write!(path, "{step}");
        is_drawing = true;
    }
    path
}

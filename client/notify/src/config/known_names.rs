//! What to write instead of a name that is not known.

use cohabit_settings::closest_name;

/// The nearest of these names, or all of them.
pub(super) fn known_names<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match closest_name(written, known.iter().copied()) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("there are {}", known.join(", ")),
    }
}

//! Colours that are distinguishable on light and dark pages.

use plotters::style::RGBColor;

const SERIES: [RGBColor; 8] = [
    RGBColor(59, 130, 246),
    RGBColor(249, 115, 22),
    RGBColor(16, 163, 107),
    RGBColor(168, 85, 247),
    RGBColor(225, 57, 72),
    RGBColor(6, 163, 190),
    RGBColor(190, 140, 20),
    RGBColor(219, 72, 150),
];

/// The colour of the series with this index.
pub(crate) const fn of_series(place: usize) -> RGBColor {
    SERIES[place % SERIES.len()]
}

/// The legend marker of the series with this index, as HTML.
pub(crate) fn legend_marker(place: usize) -> String {
    let RGBColor(red, green, blue) = of_series(place);
    format!("<i class=\"chip\" style=\"background:#{red:02x}{green:02x}{blue:02x}\"></i>")
}

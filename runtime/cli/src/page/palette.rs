//! Colours that can be told apart on light and on dark paper.

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
/// The part of a turn after which a colour is far from all before it.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// Of the policy, or the curve, at this place.
pub(crate) const fn of_series(place: usize) -> RGBColor {
    SERIES[place % SERIES.len()]
}

/// Of a job: neighbours in number are far apart in colour.
pub(crate) fn of_job(number: usize) -> RGBColor {
    let hue = (number as f64 * GOLDEN).fract() * 6.0;
    let lightness = [0.46, 0.56, 0.64][number % 3];
    let chroma = 0.5 * (1.0 - f64::abs(2.0 * lightness - 1.0));
    let middle = chroma * (1.0 - (hue % 2.0 - 1.0).abs());
    let (red, green, blue) = match hue as u8 {
        0 => (chroma, middle, 0.0),
        1 => (middle, chroma, 0.0),
        2 => (0.0, chroma, middle),
        3 => (0.0, middle, chroma),
        4 => (middle, 0.0, chroma),
        _ => (chroma, 0.0, middle),
    };
    let byte = |part: f64| ((part + lightness - chroma / 2.0) * 255.0).round() as u8;
    RGBColor(byte(red), byte(green), byte(blue))
}

/// As a page writes it.
pub(crate) fn written(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

//! Colors of texts and curves differ enough from what they lie on: WCAG 2.2, 1.4.3 and 1.4.11.

use std::collections::BTreeMap;

/// The style sheet as it is served.
const STYLE: &str = include_str!("../assets/style.css");

/// What lies on what, and the least contrast: 4.5 for texts, 3 for lines that mean something.
const PAIRS: [(&str, &str, f64); 12] = [
    ("--ink", "--card", 4.5),
    ("--ink", "--paper", 4.5),
    ("--soft", "--card", 4.5),
    ("--soft", "--paper", 4.5),
    ("--accent", "--card", 4.5),
    ("--bad", "--card", 4.5),
    ("--bad", "--paper", 4.5),
    ("--good", "--good-paper", 4.5),
    ("--running", "--running-paper", 4.5),
    ("--waiting", "--waiting-paper", 4.5),
    ("--caution", "--caution-paper", 4.5),
    ("--bad", "--bad-paper", 4.5),
];

/// The colors of the first block after this text, by name.
fn colors(after: &str) -> BTreeMap<&'static str, [f64; 3]> {
    let start = STYLE.find(after).unwrap() + after.len();
    let block = &STYLE[start..start + STYLE[start..].find('}').unwrap()];
    let pairs = block.split([';', '{', '\n']).filter_map(|part| part.trim().split_once(": #"));
    pairs.map(|(name, color)| (name, channels(color))).collect()
}

fn channels(color: &str) -> [f64; 3] {
    [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0)
}

/// The relative luminance of WCAG 2.2.
fn luminance(color: [f64; 3]) -> f64 {
    let linear = color.map(|it| if it <= 0.04045 { it / 12.92 } else { ((it + 0.055) / 1.055).powf(2.4) });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn texts_and_curves_can_be_read_in_light_and_dark() {
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9, "black on white");
    let light = colors(":root {");
    let mut dark = light.clone();
    dark.extend(colors("@media (prefers-color-scheme: dark) {\n  :root {"));
    assert!(light["--paper"] != dark["--paper"]);
    for (scheme, colors) in [("light", light), ("dark", dark)] {
        for (above, below, least) in PAIRS {
            let found = contrast(colors[above], colors[below]);
            assert!(found >= least, "{above} on {below} in {scheme}: {found:.2}, not {least}");
        }
    }
}

/// The texts and lines of charts take colors of the table above, and no others.
#[test]
fn charts_take_the_checked_colors() {
    let rules: Vec<&str> = STYLE.lines().filter(|line| line.starts_with(".chart ")).collect();
    assert!(rules.len() > 5, "{rules:?}");
    let painted = rules.iter().flat_map(|rule| rule.split([';', '{', '}']));
    let painted = painted.filter_map(|part| part.trim().split_once(": "));
    for (property, value) in painted.filter(|(name, _)| ["fill", "stroke", "color"].contains(name)) {
        let is_checked =
            ["none", "var(--soft)", "var(--accent)", "var(--bad)", "var(--line)"].contains(&value);
        assert!(is_checked, "{property}: {value}");
    }
}

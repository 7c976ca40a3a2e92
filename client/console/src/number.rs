//! Numbers for tables and sheets.

/// About three significant figures; an exponent only for very small and very large numbers.
pub fn format_number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-4..1e7).contains(&size) => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_figures() {
        assert_eq!(
            [0.0, 1e-9, 0.5, 12.345, 12345.6, 1e12].map(format_number).join(" "),
            "0 1.00e-9 0.5000 12.35 12346 1.00e12"
        );
    }
}

//! Properties that must hold for tables of sensitivity from untrusted input, for `integration/fuzz`.

use cohabit_policy::SensitivityTable;

use super::{csv_table, synergy};

/// Tables that are read grow with cores and memory; an error says something. The first byte chooses between
/// our own format and Synergy's.
///
/// # Panics
/// If a property is violated.
pub fn sensitivity_tables(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if choice % 2 == 0 {
        match csv_table::read(text) {
            Ok(tables) => tables.values().for_each(|table| check_growth(table)),
            Err(problem) => assert!(!problem.to_string().is_empty()),
        }
    } else {
        match synergy::parse_model(text) {
            Ok(table) => check_growth(&table),
            Err(why) => assert!(!why.is_empty()),
        }
    }
}

fn check_growth(table: &SensitivityTable) {
    let mut before = 0.0;
    for cores in table.cores() {
        let least = table.speed(*cores, table.memory()[0]);
        assert!(least.is_finite() && least > 0.0 && least >= before, "{least} after {before}");
        before = least;
        for amounts in table.memory().windows(2) {
            assert!(table.speed(*cores, amounts[0]) <= table.speed(*cores, amounts[1]));
        }
    }
}

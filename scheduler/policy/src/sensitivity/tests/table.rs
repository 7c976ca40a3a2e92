//! Speeds between the points of a table, and texts that are none.

use cohabit_types::{Bytes, HostShare};
use proptest::prelude::*;

use super::kit::{IMAGES, LEVELS, by_cores, cores, curve};
use crate::sensitivity::{SensitivityError, SensitivityTable};

const GB: u64 = 1_000_000_000;

fn table() -> SensitivityTable {
    let memory = [20, 60, 100].map(|gb| Bytes(gb * GB));
    SensitivityTable::new(vec![1.0, 3.0], &memory, &[vec![0.5, 0.6, 0.8], vec![1.0, 1.0, 2.0]]).unwrap()
}

#[test]
fn speeds_are_bilinear_between_points() {
    let at = |cores: f64, gb: u64| table().speed(cores, (gb * GB) as f64);
    for (cores, gb, speed) in [
        (1.0, 20, 0.5),
        (3.0, 100, 2.0),
        (2.0, 60, 0.8),
        (1.0, 80, 0.7),
        (2.0, 80, (0.7 + 1.5) / 2.0),
        (0.5, 20, 0.25),
        (9.0, 500, 2.0),
        (3.0, 19, 0.0),
    ] {
        assert!((at(cores, gb) - speed).abs() < 1e-12, "{cores} cores and {gb} GB: {}", at(cores, gb));
    }
}

#[test]
fn a_curve_is_1_at_the_proportional_share() {
    let images = curve(by_cores(IMAGES));
    assert_eq!(images.speed(cores(3)), 1.0);
    assert_eq!(images.speed(cores(9)), 2.4);
    assert_eq!(images.speed(cores(0)), 2.4, "cores that are not claimed are not limited");
}

#[test]
fn the_knee_is_the_least_share_that_is_nearly_as_fast() {
    let images = curve(by_cores(IMAGES));
    assert_eq!(images.knee(cores(1), cores(24)), cores(9));
    assert_eq!(images.knee(cores(1), cores(3)), cores(3));
    assert_eq!(images.knee(cores(12), cores(24)), cores(12), "not below the least");
    let with_memory = curve(table());
    let host = |cpus, gb: u64| HostShare { cpus, memory: Bytes(gb * GB) };
    assert_eq!(with_memory.knee(host(1, 20), host(3, 60)), host(3, 20));
}

#[test]
fn what_is_no_table_is_refused_with_a_sentence() {
    let memory = [Bytes(20 * GB), Bytes(60 * GB)];
    let refused = |levels: &[f64], rows: &[Vec<f64>]| {
        SensitivityTable::new(levels.to_vec(), &memory, rows).unwrap_err().to_string()
    };
    for (levels, rows, why) in [
        (&[][..], vec![], "it needs 1 to 256 numbers of cores"),
        (&[2.0, 1.0], vec![vec![1.0; 2]; 2], "it needs 1 to 256 numbers of cores"),
        (&[0.0, 1.0], vec![vec![1.0; 2]; 2], "it has a speed for 0 cores"),
        (&[1.0, 2.0], vec![vec![1.0; 2], vec![1.0]], "it has no speed for 2 cores and 55.9 GiB"),
        (&[1.0, 2.0], vec![vec![1.0; 2]], "it has no speed for 2 cores and 18.6 GiB"),
        (&[1.0, 2.0], vec![vec![1.0; 2], vec![1.0, 0.9]], "its speed decreases to 0.9 at 2 cores"),
        (&[1.0], vec![vec![1.0, 0.5]], "its speed decreases to 0.5 at 1 cores"),
        (&[1.0], vec![vec![1.0, f64::NAN]], "its speed for 1 cores and 55.9 GiB is NaN"),
        (&[1.0], vec![vec![0.0, 1.0]], "its speed for 1 cores and 18.6 GiB is 0"),
    ] {
        let said = refused(levels, &rows);
        assert!(said.starts_with(why), "{said}");
    }
    let many = SensitivityTable::new(vec![1.0], &[Bytes(1); 2], &[vec![1.0; 2]]);
    assert_eq!(many.unwrap_err(), SensitivityError::Levels);
}

proptest! {
    #[test]
    fn more_is_never_slower(
        steps in prop::collection::vec(prop::collection::vec(0.0..1.0f64, 4), 9),
        (cores, more) in (0.1..30.0f64, 0.0..10.0f64),
        (memory, further) in (0.0..200.0f64, 0.0..50.0f64),
    ) {
        let mut rows = vec![vec![0.1; 4]; 9];
        for row in 0..9 {
            for column in 0..4 {
                let above = if row > 0 { rows[row - 1][column] } else { 0.0 };
                let before = if column > 0 { rows[row][column - 1] } else { 0.0 };
                rows[row][column] = f64::max(above, before).max(0.1) + steps[row][column];
            }
        }
        let levels = [20, 62, 125, 187].map(|gb| Bytes(gb * GB));
        let table = SensitivityTable::new(LEVELS.to_vec(), &levels, &rows).unwrap();
        let at = |cores: f64, gb: f64| table.speed(cores, gb * GB as f64);
        prop_assert!(at(cores + more, memory + further) >= at(cores, memory) - 1e-12);
        prop_assert!(at(cores, memory) <= rows[8][3]);
    }
}

//! Checks of input from workers: JSON in the journal has no NaN, and a device is there once.

use std::collections::BTreeSet;

use cohabit_types::{Inventory, Progress, Report};

/// A node with each of its devices once: a driver that lists one twice must not have it booked twice.
pub(crate) fn inventory(mut inventory: Inventory) -> Inventory {
    let mut known = BTreeSet::new();
    inventory.devices.retain(|device| known.insert(device.id.clone()));
    inventory
}

/// Reports with finite numbers only: workers promise that, and a broken promise must not break the journal.
pub(crate) fn reports(mut reports: Vec<Report>) -> Vec<Report> {
    for report in &mut reports {
        match report {
            Report::Started { .. } | Report::PrivateUser { .. } => {}
            Report::Ended { progress, .. } => progress.iter_mut().for_each(keep_finite),
            Report::Sharing { .. } | Report::Condition { .. } | Report::Telemetry(_) => {}
            Report::ColocationSamples(all) => all.retain(|it| it.rate.is_finite()),
            Report::Progress(all) => all.iter_mut().for_each(|it| keep_finite(&mut it.progress)),
        }
    }
    reports
}

fn keep_finite(progress: &mut Progress) {
    progress.rate = progress.rate.filter(|rate| rate.is_finite());
    progress.metrics.retain(|_, value| value.is_finite());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_listed_twice_is_there_once() {
        let listed = crate::test_kit::inventory();
        let twice = Inventory { devices: [&listed.devices[..], &listed.devices].concat(), ..listed.clone() };
        assert_eq!(inventory(twice), listed);
    }

    #[test]
    fn numbers_of_a_report_are_finite() {
        let metrics = [("loss".to_owned(), f64::NAN), ("lr".to_owned(), 0.1)].into();
        let progress = Progress { rate: Some(f64::INFINITY), metrics, ..Progress::default() };
        let of = cohabit_types::AttemptProgress { attempt: "1#1".parse().unwrap(), progress };
        let Report::Progress(kept) = reports(vec![Report::Progress(vec![of])]).remove(0) else { panic!() };
        assert_eq!(kept[0].progress.rate, None);
        assert_eq!(kept[0].progress.metrics.keys().collect::<Vec<_>>(), ["lr"]);
    }
}

//! Where the bars of jobs that share a device lie: none covers another that was there at the same time.

use cohabit_client::types::{JobRecord, Share, Time};

/// A stay of a job on a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stay<'a> {
    pub(crate) job: &'a JobRecord,
    pub(crate) share: Share,
    pub(crate) from: Time,
    pub(crate) to: Time,
}

/// The top and the height of each bar in a strip of this height.
pub(crate) fn lanes(stays: &[Stay<'_>], height: u32) -> Vec<(u32, u32)> {
    let spans: Vec<(Time, Time)> = stays.iter().map(|stay| (stay.from, stay.to)).collect();
    let shares: Vec<f64> = stays.iter().map(|stay| stay.share.as_f64().clamp(0.1, 1.0)).collect();
    let mut places: Vec<(f64, f64)> = Vec::with_capacity(stays.len());
    for (number, (from, to)) in spans.iter().enumerate() {
        let mut beside: Vec<(f64, f64)> = (0..number)
            .filter(|other| spans[*other].0 < *to && *from < spans[*other].1)
            .map(|other| places[other])
            .collect();
        beside.sort_by(|one, other| one.0.total_cmp(&other.0));
        places.push((first_gap(&beside, shares[number]), shares[number]));
    }
    let highest = places.iter().map(|(top, share)| top + share).fold(1.0, f64::max);
    let pixels = |part: f64| (part / highest * f64::from(height)).round() as u32;
    places.into_iter().map(|(top, share)| (pixels(top), pixels(share).max(4))).collect()
}

/// The highest place where this share fits between the others.
fn first_gap(others: &[(f64, f64)], share: f64) -> f64 {
    let mut top = 0.0;
    for (other, height) in others {
        if top + share <= other + 1e-9 {
            break;
        }
        top = f64::max(top, other + height);
    }
    top
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_used_where_the_share_fits() {
        assert!((first_gap(&[], 1.0) - 0.0).abs() < 1e-9);
        assert!((first_gap(&[(0.0, 0.5)], 0.5) - 0.5).abs() < 1e-9);
        assert!((first_gap(&[(0.5, 0.5)], 0.5) - 0.0).abs() < 1e-9);
        assert!((first_gap(&[(0.25, 0.25)], 0.5) - 0.5).abs() < 1e-9);
    }
}

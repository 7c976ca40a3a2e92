//! What is free goes where it is worth most.

use cohabit_types::{Bytes, HostShare};
use proptest::prelude::*;

use super::kit::{IMAGES, LEVELS, TEXT, by_cores, cores, curve};
use crate::sensitivity::{SensitivityTable, ShareClaim, hand_out};

fn claim(speeds: [f64; 9], least: u32, most: u32) -> ShareClaim {
    ShareClaim { share: cores(least), most: cores(most), weight: 1.0, curve: Some(curve(by_cores(speeds))) }
}

fn value(claims: &[ShareClaim]) -> f64 {
    claims.iter().filter_map(|it| Some(it.curve.as_ref()?.speed(it.share))).sum()
}

/// The largest sum of speeds of any hand-out in whole cores.
fn optimum(curves: &[[f64; 9]], cores: usize) -> f64 {
    let mut best = vec![0.0; cores + 1];
    for speeds in curves {
        let table = by_cores(*speeds);
        let speed = |own: usize| table.speed(own as f64, 0.0) / table.speed(3.0, 0.0);
        best = (0..=cores)
            .map(|all| (1..=all).map(|own| best[all - own] + speed(own)).fold(f64::NEG_INFINITY, f64::max))
            .collect();
        best[0] = f64::NEG_INFINITY;
    }
    best[cores]
}

/// Golden check 5 of `maifs.md`: a server with 8 GPUs and 24 cores, four jobs that train on images and four
/// on text.
#[test]
fn cores_go_to_the_jobs_that_need_them() {
    let curves = [IMAGES, IMAGES, IMAGES, IMAGES, TEXT, TEXT, TEXT, TEXT];
    let proportional: Vec<ShareClaim> = curves.map(|speeds| claim(speeds, 3, 24)).to_vec();
    assert!((value(&proportional) - 8.0).abs() < 1e-12);
    let mut claims = curves.map(|speeds| claim(speeds, 1, 24)).to_vec();
    let left = hand_out(cores(16), &mut claims);
    assert_eq!(left, cores(0));
    assert_eq!(claims.iter().map(|it| it.share.cpus).collect::<Vec<_>>(), [5, 5, 5, 5, 1, 1, 1, 1]);
    assert!((value(&claims) - 10.12).abs() < 1e-9);
    assert!((optimum(&curves, 24) - 10.12).abs() < 1e-9, "{}", optimum(&curves, 24));
}

#[test]
fn what_nobody_gains_by_is_left_or_tried() {
    let mut known = [claim(TEXT, 1, 24)];
    assert_eq!(hand_out(cores(8), &mut known), cores(8));
    let mut unknown = [
        ShareClaim { curve: None, ..claim(TEXT, 2, 12) },
        ShareClaim { curve: None, ..claim(TEXT, 4, 8) },
        claim(TEXT, 1, 24),
    ];
    assert_eq!(hand_out(cores(8), &mut unknown), cores(0));
    assert_eq!(unknown.map(|it| it.share.cpus), [8, 6, 1]);
}

#[test]
fn nobody_gets_more_than_it_may_have() {
    let mut claims = [claim(IMAGES, 1, 4), claim(IMAGES, 1, 2)];
    assert_eq!(hand_out(cores(20), &mut claims), cores(16));
    assert_eq!(claims.map(|it| it.share.cpus), [4, 2]);
}

#[test]
fn a_level_that_is_worth_nothing_does_not_hide_the_one_behind_it() {
    let mut stepped = IMAGES;
    (stepped[1], stepped[2], stepped[3]) = (0.37, 0.37, 1.3);
    let mut claims = [claim(stepped, 1, 24)];
    hand_out(cores(4), &mut claims);
    assert_eq!(claims[0].share, cores(5));
}

#[test]
fn memory_is_handed_out_where_cores_are_worth_nothing() {
    const GB: u64 = 1_000_000_000;
    let memory = [Bytes(20 * GB), Bytes(125 * GB)];
    let rows = [vec![0.5, 0.5], vec![1.0, 2.0]];
    let table = SensitivityTable::new(vec![1.0, 3.0], &memory, &rows).unwrap();
    let host = |cpus, gb: u64| HostShare { cpus, memory: Bytes(gb * GB) };
    let job = ShareClaim { share: host(1, 20), most: host(6, 250), weight: 1.0, curve: Some(curve(table)) };
    let mut claims = [job];
    let left = hand_out(host(5, 200), &mut claims);
    assert_eq!((claims[0].share, left), (host(3, 125), host(3, 95)));
}

fn speeds() -> impl Strategy<Value = [f64; 9]> {
    prop::array::uniform9(0.0..1.0f64).prop_map(|steps| {
        let mut speed = 0.1;
        steps.map(|step| {
            speed += step;
            speed
        })
    })
}

proptest! {
    #[test]
    fn nothing_is_given_twice_and_nothing_is_taken(
        curves in prop::collection::vec((speeds(), 1..4u32, 0..20u32, prop::bool::ANY), 1..9),
        free in 0..30u32,
    ) {
        let mut claims: Vec<ShareClaim> = curves
            .iter()
            .map(|(speeds, least, range, known)| {
                let claim = claim(*speeds, *least, least + range);
                ShareClaim { curve: claim.curve.filter(|_| *known), ..claim }
            })
            .collect();
        let before = claims.clone();
        let left = hand_out(cores(free), &mut claims);
        let given: u32 = claims.iter().zip(&before).map(|(now, was)| now.share.cpus - was.share.cpus).sum();
        prop_assert_eq!(given + left.cpus, free);
        prop_assert!(claims.iter().all(|it| it.share.is_within(it.most)));
        prop_assert!(value(&claims) >= value(&before) - 1e-9);
    }

    /// Curves with falling gains are handed out as well as possible.
    #[test]
    fn a_hand_out_of_curves_that_bend_down_is_optimal(
        gains in prop::collection::vec(prop::array::uniform9(0.0..1.0f64), 2..5),
        all in 8..24usize,
    ) {
        let bend = |mut gains: [f64; 9]| {
            gains.sort_by(|one, other| other.total_cmp(one));
            let (mut speed, mut before) = (0.0, 0.0);
            std::array::from_fn(|row| {
                speed += (gains[row] + 0.01) * (LEVELS[row] - before);
                before = LEVELS[row];
                speed
            })
        };
        let curves: Vec<[f64; 9]> = gains.into_iter().map(bend).collect();
        let mut claims: Vec<ShareClaim> = curves.iter().map(|speeds| claim(*speeds, 1, 24)).collect();
        hand_out(cores(all as u32 - curves.len() as u32), &mut claims);
        prop_assert!(value(&claims) >= optimum(&curves, all) - 1e-6);
    }
}

//! SELECT: which servers, on lists small enough to check by eye.

use proptest::prelude::*;

use super::servers;
use crate::mapping::{Selection, Slot, select};

fn chosen(free: &[u32], devices: u32, selection: &Selection) -> Option<Vec<(usize, u32)>> {
    let pairs = |slots: Vec<Slot>| slots.into_iter().map(|slot| (slot.server, slot.count)).collect();
    select(&servers(free), devices, selection).map(pairs)
}

#[test]
fn a_job_that_fits_a_server_takes_the_tightest_one() {
    for selection in [Selection::Consolidate, Selection::Fragments] {
        assert_eq!(chosen(&[8, 3, 5, 3], 3, &selection), Some(vec![(1, 3)]));
        assert_eq!(chosen(&[8, 3, 5, 3], 4, &selection), Some(vec![(2, 4)]));
    }
}

#[test]
fn consolidation_takes_the_fullest_servers_and_a_tight_fit_for_the_rest() {
    assert_eq!(chosen(&[2, 8, 4, 8, 3], 19, &Selection::Consolidate), Some(vec![(1, 8), (3, 8), (4, 3)]));
    assert_eq!(chosen(&[4, 8, 4, 8, 8], 20, &Selection::Consolidate), Some(vec![(1, 8), (3, 8), (0, 4)]));
    assert_eq!(chosen(&[8, 8, 8], 18, &Selection::Consolidate), Some(vec![(0, 8), (1, 8), (2, 2)]));
    assert_eq!(chosen(&[1, 2, 3], 6, &Selection::Consolidate), Some(vec![(2, 3), (1, 2), (0, 1)]));
    assert_eq!(chosen(&[0, 2, 0, 2, 2], 3, &Selection::Consolidate), Some(vec![(1, 2), (3, 1)]));
}

#[test]
fn fragments_take_the_smallest_remainders_first() {
    assert_eq!(
        chosen(&[5, 1, 2, 0, 1], 6, &Selection::Fragments),
        Some(vec![(1, 1), (4, 1), (2, 2), (0, 2)])
    );
    assert_eq!(chosen(&[2, 2, 2], 3, &Selection::Fragments), Some(vec![(0, 2), (1, 1)]));
}

#[test]
fn too_few_free_devices_give_no_selection() {
    for selection in [Selection::Consolidate, Selection::Fragments, Selection::Random(1)] {
        assert_eq!(chosen(&[2, 3], 6, &selection), None);
        assert_eq!(chosen(&[], 1, &selection), None);
    }
}

#[test]
fn no_devices_need_no_server() {
    for selection in [Selection::Consolidate, Selection::Fragments, Selection::Random(1)] {
        assert_eq!(chosen(&[2, 3], 0, &selection), Some(vec![]));
    }
}

#[test]
fn random_servers_follow_from_the_seed_and_from_what_is_free() {
    let first = |free: u32, seed| chosen(&[free; 32], 4 * free, &Selection::Random(seed)).unwrap();
    assert_eq!(first(8, 1), first(8, 1));
    assert_ne!(first(8, 1), first(8, 2));
    let places = |free| first(free, 1).into_iter().map(|slot| slot.0).collect::<Vec<_>>();
    assert_ne!(places(8), places(7), "one seed does not always name the same servers");
}

/// The definition, step by step, on a list of its own.
fn by_definition(free: &[u32], devices: u32, selection: &Selection) -> Option<Vec<(usize, u32)>> {
    let mut unused: Vec<(usize, u32)> = free.iter().copied().enumerate().filter(|it| it.1 > 0).collect();
    if unused.iter().map(|it| it.1).sum::<u32>() < devices {
        return None;
    }
    let fit = |unused: &[(usize, u32)], need| {
        unused.iter().filter(|it| it.1 >= need).min_by_key(|it| (it.1, it.0)).map(|it| (it.0, need))
    };
    if let Some(fit) = fit(&unused, devices) {
        return Some(vec![fit]);
    }
    let mut slots = Vec::new();
    let mut need = devices;
    unused.sort_by_key(|it| it.1);
    while need > 0 {
        if *selection == Selection::Fragments {
            let (server, count) = unused.remove(0);
            slots.push((server, count.min(need)));
            need -= count.min(need);
        } else if let Some(fit) = fit(&unused, need) {
            slots.push(fit);
            need = 0;
        } else {
            let most = unused.iter().map(|it| it.1).max()?;
            let (server, count) = unused.remove(unused.iter().position(|it| it.1 == most)?);
            slots.push((server, count));
            need -= count;
        }
    }
    Some(slots)
}

proptest! {
    #[test]
    fn walking_by_levels_follows_the_definition(
        free in prop::collection::vec(0..9_u32, 0..24), devices in 1..80_u32
    ) {
        for selection in [Selection::Consolidate, Selection::Fragments] {
            prop_assert_eq!(chosen(&free, devices, &selection), by_definition(&free, devices, &selection));
        }
    }
}
